interface Props {
  label: string;
  /** The words for no choice. */
  every: string;
  value: string;
  options: readonly { value: string; words: string }[];
  onChange: (value: string) => void;
}

/** Narrows a list by one property; nothing chosen means all. */
export function Select({ label, every, value, options, onChange }: Props) {
  return (
    <select
      className="field select"
      aria-label={label}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    >
      <option value="">{every}</option>
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.words}
        </option>
      ))}
    </select>
  );
}
