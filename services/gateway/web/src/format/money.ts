/** A limit somebody chose: as short as it was typed, at least cents. */
export function limit(usd: number): string {
  return `$${usd.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 4 })}`;
}

/** US dollars: four digits under 1, two from there on. */
export function money(usd: number): string {
  if (usd === 0) return "$0";
  const size = Math.abs(usd);
  if (size < 0.00005) return usd < 0 ? "-<$0.0001" : "<$0.0001";
  // 0.99996 would read "$1.0000": from there on two digits say the same.
  const digits = size < 0.99995 ? 4 : 2;
  return `${usd < 0 ? "-" : ""}$${size.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })}`;
}
