const CLOCK = { hour: 'numeric', minute: '2-digit', second: '2-digit', timeZoneName: 'short' } as const;
const DAY = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', ...CLOCK });
const DAY_OF_YEAR = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });

/** A time in the zone of the reader, to the second, with the year if it is not this one. The pointer shows it exactly. */
export function Time({ at }: { at: string | null }) {
  if (at === null) return <>–</>;
  const time = new Date(at);
  const format = time.getFullYear() === new Date().getFullYear() ? DAY : DAY_OF_YEAR;
  return (
    <time dateTime={at} title={at}>
      {format.format(time)}
    </time>
  );
}
