// The page begins: the token of the address, then the stream and the views.
import "./tokens.css";
import "./parts.css";
import "./page.css";
import { createRoot } from "react-dom/client";
import { login } from "./api";
import { App } from "./app";
import { connect } from "./live";

login().catch(() => undefined).then(() => {
  connect();
  createRoot(document.getElementById("root")!).render(<App />);
});
