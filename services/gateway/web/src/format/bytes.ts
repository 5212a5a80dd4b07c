const UNITS = ["kB", "MB", "GB", "TB"];

/** A size in decimal units with three digits at most: 812 B, 4.1 kB, 36 MB. */
export function bytes(count: number): string {
  if (count < 1000) return `${count} B`;
  let value = count;
  let unit = "";
  for (const next of UNITS) {
    if (value < 999.5) break;
    value /= 1000;
    unit = next;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${unit}`;
}
