// The page of a benchmark as one script and one style sheet, which jobs/bench/page.py puts inline: a report needs no server. Its views are
// those of the page, over Preact instead of React, which is a tenth as large.
import { defineConfig } from "vite";

export default defineConfig({
  define: { "process.env.NODE_ENV": '"production"' },
  resolve: {
    alias: [
      { find: "react/jsx-runtime", replacement: "preact/jsx-runtime" },
      { find: "react-dom/client", replacement: "preact/compat/client" },
      { find: "react", replacement: "preact/compat" },
    ],
  },
  build: {
    outDir: "../src/kernelwright/jobs/bench/assets",
    emptyOutDir: false,
    target: "es2022",
    lib: { entry: "src/report/standalone.tsx", formats: ["iife"], name: "report", fileName: () => "report.js", cssFileName: "report" },
  },
});
