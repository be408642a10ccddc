// Types of htm. The module itself is vendor/htm.js.

declare const htm: {
  bind<R>(
    // deno-lint-ignore no-explicit-any
    h: (type: any, props: any, ...children: any[]) => R,
  ): (strings: TemplateStringsArray, ...values: unknown[]) => R;
};
export default htm;
