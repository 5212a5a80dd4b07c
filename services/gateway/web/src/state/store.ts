import { useSyncExternalStore } from "react";

/** A value that components follow and others replace. */
export class Store<T> {
  #value: T;
  readonly #listeners = new Set<() => void>();

  constructor(initial: T) {
    this.#value = initial;
  }

  get = (): T => this.#value;

  /** Replace the value; the same value tells nobody. */
  set(next: T): void {
    if (Object.is(next, this.#value)) return;
    this.#value = next;
    this.#listeners.forEach((listener) => listener());
  }

  update(change: (value: T) => T): void {
    this.set(change(this.#value));
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
}

/** One part of the store's value: draws only when that part is another. `select` must not make anything. */
export function useSelected<T, Part>(store: Store<T>, select: (value: T) => Part): Part {
  const get = () => select(store.get());
  return useSyncExternalStore(store.subscribe, get, get);
}

/** The store's value in a component, followed as it changes. */
export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(store.subscribe, store.get, store.get);
}
