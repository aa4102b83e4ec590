// How the pages are built: content-hashed files beside one index, found from wherever the studio is served.
import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../static",
    emptyOutDir: true,
    assetsDir: "assets",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    manifest: true,
    cssCodeSplit: true,
    reportCompressedSize: false,
  },
});
