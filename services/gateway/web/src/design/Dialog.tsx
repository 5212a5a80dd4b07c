import { useEffect, useRef, type ReactNode } from "react";
import { IconButton } from "./Button";
import { useText } from "../i18n";

interface Props {
  title: string;
  onClose: () => void;
  children: ReactNode;
  className?: string;
}

/** A modal: what is behind it is inert, Escape and an outside press close it, focus returns. */
export function Dialog({ title, onClose, children, className = "" }: Props) {
  const t = useText();
  const dialog = useRef<HTMLDialogElement>(null);

  useEffect(() => {
    const element = dialog.current;
    const before = document.activeElement;
    element?.showModal();
    return () => {
      element?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);

  return (
    <dialog
      ref={dialog}
      className={`dialog floating ${className}`}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <div className="dialog-body">
        <header className="dialog-head">
          <h2>{title}</h2>
          <IconButton icon="close" label={t("common.close")} onClick={onClose} />
        </header>
        {children}
      </div>
    </dialog>
  );
}
