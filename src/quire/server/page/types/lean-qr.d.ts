// Types of the parts of lean-qr that the page uses. The module itself is vendor/lean-qr.js.

export declare const correction: { M: number };
export declare const mode: { bytes(data: Uint8Array): unknown };
export declare function generate(
  data: unknown,
  options: { minCorrectionLevel: number; maxCorrectionLevel: number; maxVersion: number },
): { size: number; get(x: number, y: number): boolean };
