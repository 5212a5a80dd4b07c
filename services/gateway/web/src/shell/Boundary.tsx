import { Component, type ReactNode } from "react";
import { Button } from "../design/Button";
import { CopyButton } from "../design/CopyButton";
import { text } from "../i18n";

interface State {
  error: Error | null;
}

/** A part that fails to draw shows a card with a reload; the navigation goes on working (GTW-254). */
export class Boundary extends Component<{ children: ReactNode }, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: Error): State {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <div className="page-empty" role="alert">
        <h1>{text("broken.title")}</h1>
        <p className="muted">{text("broken.kept")}</p>
        <div className="row-actions">
          <Button look="primary" onClick={() => location.reload()}>
            {text("broken.reload")}
          </Button>
          <CopyButton
            label={text("error.copy_details")}
            text={() => `${error.message}\n${error.stack ?? ""}`}
          />
        </div>
      </div>
    );
  }
}
