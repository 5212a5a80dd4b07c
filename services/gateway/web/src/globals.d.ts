/** Of this bundle; set by the build. */
declare const __PAGE_VERSION__: string;
