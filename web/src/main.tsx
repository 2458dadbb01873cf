// The page begins: colours first, then the token of the address, then the stream and the views.
import "./tokens.css";
import "./page.css";
import { createRoot } from "react-dom/client";
import { login } from "./api";
import { App } from "./app";
import { connect } from "./live";
import { applyTheme, storedTheme } from "./theme";

applyTheme(storedTheme());
login().catch(() => undefined).then(() => {
  connect();
  createRoot(document.getElementById("root")!).render(<App />);
});
