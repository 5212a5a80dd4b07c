import { lazy } from "react";

/** The sections come in a file of their own: the chat is drawn without them (FLD-075). */
export const loadSections = () => import("./Sections");

export const Sections = lazy(async () => ({ default: (await loadSections()).Sections }));
