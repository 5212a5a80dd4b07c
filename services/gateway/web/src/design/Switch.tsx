import { useId } from "react";

interface Props {
  on: boolean;
  label: string;
  hint?: string;
  disabled?: boolean;
  onChange: (on: boolean) => void;
}

export function Switch({ on, label, hint, disabled = false, onChange }: Props) {
  const id = useId();
  return (
    <div className="switch-row">
      <div>
        <span className="switch-label" id={`${id}-label`}>
          {label}
        </span>
        {hint && (
          <span className="switch-hint" id={`${id}-hint`}>
            {hint}
          </span>
        )}
      </div>
      <button
        type="button"
        role="switch"
        className="switch"
        aria-checked={on}
        aria-labelledby={`${id}-label`}
        aria-describedby={hint ? `${id}-hint` : undefined}
        disabled={disabled}
        onClick={() => onChange(!on)}
      >
        <span className="switch-knob" />
      </button>
    </div>
  );
}
