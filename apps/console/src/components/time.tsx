const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });

/** A time in the zone of the reader, to the second. The pointer shows it exactly. */
export function Time({ at }: { at: string | null }) {
  if (at === null) return <>–</>;
  return (
    <time dateTime={at} title={at}>
      {TIME.format(new Date(at))}
    </time>
  );
}
