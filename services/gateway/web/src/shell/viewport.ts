import { useEffect } from "react";

/** Keep the page's height to what is really seen: the software keyboard covers nothing (FLD-080). */
export function useViewportHeight(): void {
  useEffect(() => {
    const view = window.visualViewport;
    if (!view) return;
    const fit = () => {
      // A page that is pinched larger must stay pannable: only the keyboard changes the height at scale 1.
      if (Math.abs(view.scale - 1) > 0.01) return;
      document.documentElement.style.setProperty("--view-height", `${view.height}px`);
      window.scrollTo(0, 0);
    };
    fit();
    view.addEventListener("resize", fit);
    return () => view.removeEventListener("resize", fit);
  }, []);
}
