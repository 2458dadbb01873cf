// The page of a benchmark as one script and one style sheet, which jobs/bench/page.py puts inline: a report needs no server.
import { defineConfig } from "vite";

export default defineConfig({
  build: {
    outDir: "../src/kernelwright/jobs/bench/assets",
    emptyOutDir: false,
    target: "es2022",
    lib: { entry: "src/report/standalone.ts", formats: ["iife"], name: "report", fileName: () => "report.js", cssFileName: "report" },
  },
});
