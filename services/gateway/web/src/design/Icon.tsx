/** Line icons on a 16 px grid, drawn for this page. Always beside a word or named by their button. */

const SHAPES = {
  plus: "M8 3.25v9.5M3.25 8h9.5",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.4 10.4 13.5 13.5",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  close: "m4 4 8 8M12 4l-8 8",
  check: "m3.25 8.5 3.25 3.25 6.25-7.5",
  chevron: "m6 3.75 4.25 4.25L6 12.25",
  down: "M8 3v10M4 9.25 8 13l4-3.75",
  up: "M8 13V3M4 6.75 8 3l4 3.75",
  stop: "M4.5 4.5h7v7h-7z",
  clock: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 4.75V8l2.25 1.5",
  hand: "M8 1.75 13 3.5v4c0 3.1-2 5.6-5 6.75C5 13.1 3 10.6 3 7.5v-4L8 1.75ZM8 5v3.25M8 10.6v.15",
  question:
    "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM6.4 6.3c.2-1 .9-1.5 1.7-1.5 1 0 1.7.6 1.7 1.5 0 1.3-1.8 1.4-1.8 2.6M8 11v.15",
  pulse: "M1.75 8.5h2.5l2-5 3.25 9 2-5.5.75 1.5h2",
  plug: "M5.5 2v3M10.5 2v3M4 5h8v2.5a4 4 0 0 1-8 0V5ZM8 11.5V14",
  sliders:
    "M2.5 5h5M11 5h2.5M2.5 11H5M8.5 11h5M9.25 6.75a1.75 1.75 0 1 0 0-3.5 1.75 1.75 0 0 0 0 3.5ZM6.75 12.75a1.75 1.75 0 1 0 0-3.5 1.75 1.75 0 0 0 0 3.5Z",
  copy: "M6 6h7v7H6zM10 3.25V3H3v7h.25",
  share: "M8 9.5V2M5 4.75 8 2l3 2.75M4.5 7.5H3v6h10v-6h-1.5",
  alert: "M8 2.25 14.25 13H1.75L8 2.25ZM8 6.5v3M8 11.1v.15",
  failed: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM6 6l4 4M10 6l-4 4",
  spark: "M8 2.25 9.35 6.65 13.75 8 9.35 9.35 8 13.75 6.65 9.35 2.25 8 6.65 6.65z",
  tool: "M9.6 5.2a3 3 0 0 1 3.9-3L11.6 4.1l.3 1.7 1.7.3 1.5-1.5M9.6 5.2 3 11.8a1.2 1.2 0 0 0 1.7 1.7l6.6-6.6a3 3 0 0 0 2.2.2",
  note: "M3.25 3.5h9.5M3.25 8h9.5M3.25 12.5H9",
  swap: "M3 5.5h9.25L10 3.25M13 10.5H3.75L6 12.75",
  coin: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM9.8 6.2C9.5 5.4 8.9 5 8 5c-1.1 0-1.9.6-1.9 1.5 0 2 3.9 1 3.9 3 0 .9-.8 1.5-2 1.5-1 0-1.7-.5-2-1.3M8 4v1M8 11v1",
  image: "M2.5 3.5h11v9h-11zM2.5 10.5l3-3 3.5 3.5 1.75-1.75 2.75 2.75M10.5 6.5v.1",
  link: "M9 3h4v4M13 3 7.5 8.5M11 9.5V13H3V5h3.5",
  back: "M13 8H3M7.25 3.75 3 8l4.25 4.25",
  trash: "M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5 5 13h6l.5-8.5",
  key: "M10.25 9a3.25 3.25 0 1 0-3.1-2.25L2.5 11.5v2H5V12h1.5v-1.5H8l.6-.7c.5.13 1 .2 1.65.2M11 5.25v.1",
  dots: "M3.5 8v.1M8 8v.1M12.5 8v.1",
  edit: "m3 13 .6-2.9L10.5 3.2l2.3 2.3-6.9 6.9L3 13Z",
  logout: "M9.5 3H3v10h6.5M7 8h6.5M11 5.25 13.75 8 11 10.75",
  list: "M5.5 4h8M5.5 8h8M5.5 12h8M2.5 4v.1M2.5 8v.1M2.5 12v.1",
  people:
    "M6 8.25a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM1.5 13.25c0-2.2 2-3.25 4.5-3.25s4.5 1.05 4.5 3.25M10.5 3.5a2.3 2.3 0 0 1 0 4.5M12 10.25c1.6.4 2.5 1.4 2.5 3",
  eye: "M1.75 8S4 3.75 8 3.75 14.25 8 14.25 8 12 12.25 8 12.25 1.75 8 1.75 8ZM8 9.75a1.75 1.75 0 1 0 0-3.5 1.75 1.75 0 0 0 0 3.5Z",
  bell: "M4 11.5V7a4 4 0 0 1 8 0v4.5M2.75 11.5h10.5M6.75 13.75h2.5",
  download: "M8 2v7.5M5 6.75 8 9.5l3-2.75M3 12.5h10",
} as const;

export type IconName = keyof typeof SHAPES;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      className={`icon icon-${name}`}
      viewBox="0 0 16 16"
      width={size}
      height={size}
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={SHAPES[name]} />
    </svg>
  );
}

/** A ring that turns; stands still where motion is unwanted. */
export function Spinner() {
  return (
    <svg className="spinner" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" strokeWidth="2" opacity=".22" />
      <path d="M14 8a6 6 0 0 0-6-6" fill="none" stroke="currentColor" strokeWidth="2" strokeLinecap="round" />
    </svg>
  );
}

/** The product's mark: three at one table. */
export function Mark({ size = 22 }: { size?: number }) {
  return (
    <svg className="mark" viewBox="0 0 24 24" width={size} height={size} aria-hidden="true">
      <rect className="mark-ground" width="24" height="24" rx="7" />
      <path
        className="mark-line"
        d="M6.25 15.75a5.75 5.75 0 0 1 11.5 0"
        fill="none"
        strokeWidth="2"
        strokeLinecap="round"
      />
      <circle className="mark-dot" cx="12" cy="6.75" r="1.75" />
      <circle className="mark-dot" cx="6.25" cy="15.75" r="1.75" />
      <circle className="mark-dot" cx="17.75" cy="15.75" r="1.75" />
    </svg>
  );
}
