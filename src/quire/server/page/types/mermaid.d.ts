// Types of the parts of Mermaid that a frame uses. The module itself is below vendor-lazy/mermaid.

declare const mermaid: {
  initialize(settings: Record<string, unknown>): void;
  render(id: string, text: string): Promise<{ svg: string }>;
};
export default mermaid;
