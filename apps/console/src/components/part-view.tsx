import { Anchor, Group, Text } from '@mantine/core';
import { useEffect, useState } from 'react';
import Markdown, { type Components } from 'react-markdown';
import remarkGfm from 'remark-gfm';
import styles from './part-view.module.css';

/** A part of a message or an artifact, in the JSON of A2A 1.0. */
export interface Part {
  text?: string;
  data?: unknown;
  /** Bytes in base64. */
  raw?: string;
  url?: string;
  filename?: string;
  mediaType?: string;
}

/** Formats that cannot hold a script. SVG can: it is a file to download. */
const IMAGES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif'];
/** Of a longer text, only the end is shown, as plain text: elements for all of it would freeze the page. */
const MAX_TEXT = 200_000;
/** Characters that are shown of a longer text. */
const SHOWN_TEXT = 100_000;
const NUMBER = new Intl.NumberFormat();

/** Maximum characters that are searched for Markdown. */
const MAX_LOOK = 20_000;
/** Models write Markdown, also in answers with the media type of plain text: a heading, code, a table, bold text, a link, or a list. */
const LOOKS_LIKE_MARKDOWN =
  /^#{1,6} \S|^```|^\|.{1,500}\|\s*$|\*\*\S[^*\n]{0,200}\*\*|\]\(https?:|^(?:[-*]|\d{1,3}\.) .{1,500}\n(?:[-*]|\d{1,3}\.) /m;

/** What Markdown may become. Its images would be loaded from elsewhere, so they are links. HTML in it stays text. */
const COMPONENTS: Components = {
  img: ({ src, alt }) => (
    <Text span size="sm">
      [image: {alt === undefined || alt === '' ? String(src) : alt}]
    </Text>
  ),
  // The check box of a list of tasks. It is read-only.
  input: ({ checked = false }) => (
    <input type="checkbox" checked={checked} disabled readOnly aria-label={checked ? 'done' : 'not done'} />
  ),
  a: ({ href, children }) => (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  ),
};

/** A media type without its parameters, in lower case (RFC 9110 §8.3.1). */
const essenceOf = (mediaType = ''): string => (mediaType.split(';', 1)[0] ?? '').trim().toLowerCase();

/** A part of a message or an artifact. Agents and strangers have written it: nothing of it runs or loads anything. */
export function PartView({ part }: { part: Part }) {
  const { text, data, raw, url } = part;
  const mediaType = essenceOf(part.mediaType);
  if (text !== undefined) {
    if (text.length > MAX_TEXT) return <LongText text={text} />;
    if (mediaType === '' || mediaType === 'text/markdown') return <MarkdownText text={text} />;
    return mediaType === 'text/plain' && LOOKS_LIKE_MARKDOWN.test(text.slice(0, MAX_LOOK)) ? (
      <EitherText text={text} />
    ) : (
      <PlainText text={text} />
    );
  }
  if (raw !== undefined) return <FileView raw={raw} part={part} />;
  if (url !== undefined) return <Text size="sm">File elsewhere: {url}</Text>;
  return <Json value={data} />;
}

/** Columns, or lines that are set in: they need a font whose letters have one width. */
const LOOKS_LIKE_CODE = /^[ \t]|\t|\S {2,}\S/m;

const PlainText = ({ text }: { text: string }) => (
  <pre className={LOOKS_LIKE_CODE.test(text.slice(0, MAX_LOOK)) ? styles.raw : styles.words} tabIndex={0}>
    {text}
  </pre>
);

/** The end of a text, until the user asks for all of it. */
function LongText({ text }: { text: string }) {
  const [isWhole, setWhole] = useState(false);
  if (isWhole) return <PlainText text={text} />;
  return (
    <>
      <Text size="sm">
        These are the last {NUMBER.format(SHOWN_TEXT)} of {NUMBER.format(text.length)} characters.
      </Text>
      <Group gap="md">
        <Anchor component="button" type="button" size="sm" onClick={() => setWhole(true)}>
          Show all of it
        </Anchor>
        <Anchor component="button" type="button" size="sm" onClick={() => saveText(text)}>
          Download all of it
        </Anchor>
      </Group>
      <PlainText text={text.slice(-SHOWN_TEXT)} />
    </>
  );
}

/** Saves a text as a file. */
function saveText(text: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
  link.download = 'output.txt';
  link.click();
  URL.revokeObjectURL(link.href);
}

const MarkdownText = ({ text }: { text: string }) => (
  <div className={styles.markdown}>
    <Markdown remarkPlugins={[remarkGfm]} components={COMPONENTS}>
      {text}
    </Markdown>
  </div>
);

/** Text that is probably Markdown: rendered, or as it is. */
function EitherText({ text }: { text: string }) {
  const [isPlain, setPlain] = useState(false);
  return (
    <>
      {isPlain ? <PlainText text={text} /> : <MarkdownText text={text} />}
      <Anchor component="button" type="button" size="xs" ta="start" onClick={() => setPlain(!isPlain)}>
        {isPlain ? 'Show as Markdown' : 'Show as text'}
      </Anchor>
    </>
  );
}

/** Characters that change in which order a text is shown, or where its lines end. */
const REORDERING = /[\p{Bidi_Control}\u2028\u2029]/gu;
const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** JSON for people, who may have to approve it: it is shown in its own order. */
export function Json({ value }: { value: unknown }) {
  // Undefined has no JSON.
  const json = JSON.stringify(value, null, 2) as string | undefined;
  return (
    <pre className={styles.raw} tabIndex={0}>
      {json?.replace(REORDERING, escaped)}
    </pre>
  );
}

/** Bytes: an image, or a file to download. */
function FileView({ raw, part: { mediaType = '', filename = 'file' } }: { raw: string; part: Part }) {
  const [url, setUrl] = useState<string>();
  const isImage = IMAGES.includes(essenceOf(mediaType));
  useEffect(() => {
    const bytes = bytesOf(raw);
    if (!bytes) return undefined;
    // A browser saves a file of an unknown type, and renders none as a page.
    const made = URL.createObjectURL(
      new Blob([bytes], { type: isImage ? mediaType : 'application/octet-stream' }),
    );
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [raw, isImage, mediaType]);
  if (url === undefined) return <Text size="sm">A file that cannot be read</Text>;
  return (
    <>
      {isImage && <img src={url} alt={filename} className={styles.image} />}
      <Anchor href={url} download={filename} size="sm">
        Download {filename} {mediaType !== '' && `(${mediaType})`}
      </Anchor>
    </>
  );
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64.replaceAll('-', '+').replaceAll('_', '/')), (char) =>
      char.charCodeAt(0),
    );
  } catch {
    return undefined;
  }
}
