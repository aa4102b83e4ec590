// The build: content-hashed files beside one index that works under any base path. `npm run dev` serves the sources with hot
// reload and forwards the API to a running studio (TAVOLA_STUDIO, by default http://127.0.0.1:8001/).
import { defineConfig } from "vite";

const studio = process.env.TAVOLA_STUDIO ?? "http://127.0.0.1:8001/";

export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  plugins: [
    {
      name: "tavola-session",
      apply: "serve",
      // The page needs the running studio's token and settings, which its index page holds as <meta> elements.
      async transformIndexHtml(html: string) {
        const page = await (await fetch(studio)).text();
        const metas = page.match(/<meta name="tavola-[^>]*>/g) ?? [];
        return html.replace("<!--tavola-->", ['<base href="/">', ...metas].join("\n    "));
      },
    },
  ],
  server: {
    proxy: {
      "/api": {
        target: studio,
        changeOrigin: true,
        // The studio rejects requests of other origins, and the development server is one.
        configure: (proxy) =>
          proxy.on("proxyReq", (request) => {
            request.removeHeader("origin");
            request.removeHeader("sec-fetch-site");
          }),
      },
    },
  },
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
