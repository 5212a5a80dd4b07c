/** The two catalogues and the language in use (GTW-262). */

import en from "../locales/en";
import vi from "../locales/vi";
import { recall, remember } from "../state/device";
import { Store, useStore } from "../state/store";

export type Key = keyof typeof en;
export type Language = "en" | "vi";
export type Values = Record<string, string | number>;

const CATALOGUES: Record<Language, Record<Key, string>> = { en, vi };

function asLanguage(text: string | null | undefined): Language | null {
  return text === "en" || text === "vi" ? text : null;
}

const chosen = new Store<Language>(asLanguage(recall("language")) ?? "en");

/** The server's `language`, which holds until this device chose one of its own. */
export function setServerLanguage(language: string): void {
  if (asLanguage(recall("language")) === null) apply(asLanguage(language) ?? "en");
}

/** Choose the language of this device. */
export function chooseLanguage(language: Language): void {
  remember("language", language);
  apply(language);
}

function apply(language: Language): void {
  document.documentElement.lang = language;
  chosen.set(language);
}

/** A sentence outside of components; in them, use `useText`. */
export function text(key: Key, values: Values = {}): string {
  return fill(CATALOGUES[chosen.get()][key], values);
}

export function fill(sentence: string, values: Values): string {
  return sentence.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

/** The language in use; draws again when it changes. */
export function useLanguage(): Language {
  return useStore(chosen);
}

/** Looks sentences up in the language in use. */
export function useText(): (key: Key, values?: Values) => string {
  const language = useLanguage();
  return (key, values = {}) => fill(CATALOGUES[language][key], values);
}

const plural = { en: new Intl.PluralRules("en"), vi: new Intl.PluralRules("vi") };

/** A key for one and a key for more, chosen by the language's own rule. */
export function usePlural(): (one: Key, other: Key, count: number) => string {
  const language = useLanguage();
  return (one, other, count) =>
    fill(CATALOGUES[language][plural[language].select(count) === "one" ? one : other], { n: count });
}
