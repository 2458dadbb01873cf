// Numbers as people read them.
type Maybe = number | null | undefined;

export const times = (value: Maybe): string =>
  value == null ? "–" : (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)) + "×";

export const percent = (value: Maybe): string =>
  value == null ? "–" : (100 * value).toFixed((value > 0.99 && value < 1) || (value > 0 && value < 0.01) ? 1 : 0) + " %";

export const milli = (value: Maybe): string =>
  value == null ? "–" : value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value >= 1 ? value.toFixed(2) : value.toFixed(3);

export const plain = (value: number): string => String(+value.toPrecision(3));

export const mean = (values: number[]): number | null =>
  values.length ? Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length) : null;

export function duration(seconds: Maybe): string {
  if (seconds == null) return "–";
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : seconds.toFixed(0)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
}

export function ago(at: number, now: number): string {
  const seconds = Math.max(0, now - at);
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return new Date(at * 1000).toLocaleDateString(undefined, { day: "numeric", month: "short", year: "numeric" });
}

export const words = (name: string): string => name.replaceAll("_", " ");

export const dollars = (value: Maybe): string => (value ? `$${value < 1 ? value.toFixed(3) : value.toFixed(2)}` : "");

export function logTicks(low: number, high: number): number[] {
  const found: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    for (const step of [1, 2, 5]) {
      const value = step * 10 ** power;
      if (value >= low * 0.999 && value <= high * 1.001) found.push(value);
    }
  return found.length > 9 ? found.filter((value) => Math.abs(Math.log10(value) % 1) < 1e-9) : found;
}
