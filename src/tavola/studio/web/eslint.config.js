// Lint rules of the studio's pages. Types are checked by tsc; Babel parses, since typescript-eslint does not support TypeScript 7.
import babelParser from "@babel/eslint-parser";
import js from "@eslint/js";
import hooks from "eslint-plugin-react-hooks";

export default [
    { ignores: ["src/generated/**", "node_modules/**"] },
    js.configs.recommended,
    {
        files: ["src/**/*.{ts,tsx}"],
        languageOptions: {
            parser: babelParser,
            parserOptions: {
                requireConfigFile: false,
                babelOptions: { babelrc: false, configFile: false, parserOpts: { plugins: ["typescript", "jsx"] } },
            },
        },
        plugins: { "react-hooks": hooks },
        rules: {
            "no-undef": "off", // tsc knows better
            "no-unused-vars": "off",
            "no-redeclare": "off",
            "no-dupe-class-members": "off",
            eqeqeq: ["error", "always", { null: "ignore" }],
            "prefer-const": "error",
            "no-var": "error",
            "react-hooks/rules-of-hooks": "error",
        },
    },
];
