import type { ReactNode } from "react";

interface Option<V> {
  value: V;
  words: ReactNode;
  lang?: string;
}

interface Props<V> {
  label: string;
  value: V;
  options: readonly Option<V>[];
  onChange: (value: V) => void;
}

/** A few choices side by side, of which one holds. */
export function Segmented<V extends string | number>({ label, value, options, onChange }: Props<V>) {
  return (
    <div className="segmented" role="radiogroup" aria-label={label}>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          role="radio"
          aria-checked={option.value === value}
          className="segment"
          lang={option.lang}
          onClick={() => onChange(option.value)}
        >
          {option.words}
        </button>
      ))}
    </div>
  );
}
