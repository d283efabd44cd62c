import { shortId } from './uuid';

/** The end of an id. The whole is copied, searched for and read aloud. */
export const ShortId = ({ id }: { id: string }) => (
  <span title={id}>
    <span style={{ fontSize: 0 }}>{id.slice(0, id.length - shortId(id).length)}</span>
    {shortId(id)}
  </span>
);
