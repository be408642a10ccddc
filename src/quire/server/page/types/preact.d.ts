// Types of the parts of Preact that the page uses. The module itself is vendor/preact.js.

export type Key = string | number;
export type Child = VNode | string | number | bigint | boolean | null | undefined | object | Child[];
// deno-lint-ignore no-explicit-any
export type Props = Record<string, any>;
// deno-lint-ignore no-explicit-any
export type ComponentType<P = any> = ((props: P) => Child) | (new (props: P) => Component<P>);

export interface VNode<P = Props> {
  type: string | ComponentType<P>;
  props: P & { children?: Child };
  key: Key | null | undefined;
}

export abstract class Component<P = Props, S = Props> {
  constructor(props: P);
  props: P & { children?: Child };
  state: S;
  setState(state: Partial<S> | ((state: S) => Partial<S>), callback?: () => void): void;
  forceUpdate(callback?: () => void): void;
  componentDidMount?(): void;
  componentDidUpdate?(previous: P): void;
  componentWillUnmount?(): void;
  componentDidCatch?(error: unknown): void;
  shouldComponentUpdate?(next: P, state: S): boolean;
  abstract render(props: P, state: S): Child;
}

export interface Context<T> {
  Provider: ComponentType<{ value: T; children?: Child }>;
  Consumer: ComponentType<{ children: (value: T) => Child }>;
}

export function h(type: string | ComponentType, props?: Props | null, ...children: Child[]): VNode;
export const createElement: typeof h;
export const Fragment: ComponentType<{ children?: Child }>;
export function render(tree: Child, parent: Element | DocumentFragment): void;
export function hydrate(tree: Child, parent: Element | DocumentFragment): void;
export function createContext<T>(value: T): Context<T>;
export function createRef<T>(): { current: T | null };
export function cloneElement(node: VNode, props?: Props, ...children: Child[]): VNode;
export function createPortal(tree: Child, parent: Element): VNode;
export function isValidElement(value: unknown): value is VNode;
export function toChildArray(children: Child): Child[];
export const options: Props;
