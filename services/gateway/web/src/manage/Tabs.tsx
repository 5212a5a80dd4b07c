import { hrefOf, type Section } from "../state/route";

interface Tab {
  /** The part of the address; null for the section's own. */
  item: string | null;
  words: string;
}

/** Parts of one section, each under an address of its own. */
export function Tabs({
  section,
  at,
  tabs,
  label,
}: {
  section: Section;
  at: string | null;
  tabs: Tab[];
  label: string;
}) {
  return (
    <nav className="segmented" aria-label={label}>
      {tabs.map(({ item, words }) => (
        <a
          key={words}
          className="segment"
          href={hrefOf({ page: "manage", section, item })}
          aria-current={item === at ? "page" : undefined}
        >
          {words}
        </a>
      ))}
    </nav>
  );
}
