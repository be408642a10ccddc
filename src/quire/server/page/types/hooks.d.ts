// Types of Preact's hooks. The module itself is vendor/hooks.js.

import type { Context } from "preact";

type Cleanup = void | (() => void);

export function useState<T>(initial: T | (() => T)): [T, (next: T | ((value: T) => T)) => void];
export function useState<T = undefined>(): [T | undefined, (next: T | undefined) => void];
export function useReducer<T, A>(reducer: (state: T, action: A) => T, initial: T): [T, (action: A) => void];
export function useRef<T>(initial: T): { current: T };
export function useRef<T>(initial: T | null): { current: T | null };
export function useRef<T = undefined>(): { current: T | undefined };
export function useEffect(effect: () => Cleanup, inputs?: readonly unknown[]): void;
export function useLayoutEffect(effect: () => Cleanup, inputs?: readonly unknown[]): void;
// deno-lint-ignore no-explicit-any
export function useCallback<F extends (...values: any[]) => unknown>(callback: F, inputs: readonly unknown[]): F;
export function useMemo<T>(make: () => T, inputs?: readonly unknown[]): T;
export function useContext<T>(context: Context<T>): T;
export function useId(): string;
export function useErrorBoundary(callback?: (error: unknown) => void): [unknown, () => void];
