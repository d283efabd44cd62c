const HOUR_MS = 3_600_000;
/** More than the largest offset of a time zone, and than the largest change of a clock. */
const NEARBY_MS = 26 * HOUR_MS;
const MAX_FORMATS = 256;
const OFFSET = /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/;

/** By time zone, the one used last at the end. A format takes kilobytes, and tenants choose the names. */
const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const format =
    formats.get(timeZone) ?? new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' });
  formats.delete(timeZone);
  formats.set(timeZone, format);
  for (const oldest of formats.keys()) {
    if (formats.size <= MAX_FORMATS) break;
    formats.delete(oldest);
  }
  return format;
}

/** Where a local time is in real time. All are ms since 1970; local times as if they were UTC. */
export interface Located {
  /** The instant at which the clock shows it. If a clock shows a time twice, the first one. */
  instant: number;
  /** The clocks change near it, and show it never, or twice. `change` is the instant. */
  kind: 'once' | 'skipped' | 'repeated';
  change: number;
}

/** The clock on the wall of a time zone. */
export class ZoneClock {
  private readonly format: Intl.DateTimeFormat;

  /** @throws RangeError if the time zone is unknown */
  constructor(timeZone: string) {
    this.format = formatOf(timeZone);
  }

  /** How far the clock is ahead of UTC at an instant, in ms. */
  offset(instant: number): number {
    const [, sign, hours, minutes, seconds] = OFFSET.exec(this.format.format(instant)) ?? [];
    const size = (Number(hours ?? 0) * 3_600 + Number(minutes ?? 0) * 60 + Number(seconds ?? 0)) * 1_000;
    return sign === '-' ? -size : size;
  }

  /** A skipped time is as much later as the clocks skip: it has the offset from before the change. */
  locate(local: number): Located {
    const [before, after] = [this.offset(local - NEARBY_MS), this.offset(local + NEARBY_MS)];
    const instant = local - before;
    const once = (at: number): Located => ({ instant: at, kind: 'once', change: at });
    if (before === after) return once(instant);
    const late = local - after;
    const [isShownBefore, isShownAfter] = [this.offset(instant) === before, this.offset(late) === after];
    if (isShownBefore !== isShownAfter) return once(isShownBefore ? instant : late);
    const kind = isShownBefore ? 'repeated' : 'skipped';
    return {
      instant,
      kind,
      change: this.changeBetween(Math.min(instant, late) - 1, Math.max(instant, late)),
    };
  }

  /** The change before `instant`, if skipped times land at it or later; undefined = there is none. */
  skipBefore(instant: number): { change: number; offset: number } | undefined {
    const [offset, present] = [this.offset(instant - NEARBY_MS), this.offset(instant)];
    const skipped = present - offset;
    if (skipped <= 0 || this.offset(instant - skipped) !== offset) return undefined;
    return { change: this.changeBetween(instant - skipped, instant), offset };
  }

  /** The first instant with another offset than that of `from`. The offset of `until` is another one. */
  changeBetween(from: number, until: number): number {
    const offset = this.offset(from);
    let [low, high] = [from, until];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.offset(middle) === offset) low = middle;
      else high = middle;
    }
    return high;
  }
}
