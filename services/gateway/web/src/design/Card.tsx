/** A pill in a header that opens a card under it (GTW-216). */

import { useEffect, useId, useRef, useState, type ReactNode } from "react";
import { onEscape } from "./escape";

interface Props {
  pill: ReactNode;
  label: string;
  className?: string;
  children: ReactNode;
}

export function Card({ pill, label, className = "", children }: Props) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();

  useEffect(() => {
    if (!open) return;
    const outside = (event: PointerEvent) => {
      if (!(event.target instanceof Node) || root.current?.contains(event.target)) return;
      setOpen(false);
      // What was pressed may take the focus; what cannot leaves it to the pill.
      const settle = () => {
        if (document.activeElement === document.body) button.current?.focus();
      };
      addEventListener("pointerup", () => setTimeout(settle), { once: true });
    };
    document.addEventListener("pointerdown", outside, true);
    const leave = onEscape(() => {
      setOpen(false);
      button.current?.focus();
    });
    return () => {
      document.removeEventListener("pointerdown", outside, true);
      leave();
    };
  }, [open]);

  return (
    <div className={`card-anchor ${className}`} ref={root}>
      <button
        type="button"
        className="pill"
        ref={button}
        aria-expanded={open}
        aria-controls={id}
        title={label}
        onClick={() => setOpen(!open)}
      >
        <span className="visually-hidden">{label} </span>
        {pill}
      </button>
      {open && (
        <div className="card floating" id={id} role="dialog" aria-label={label}>
          {children}
        </div>
      )}
    </div>
  );
}
