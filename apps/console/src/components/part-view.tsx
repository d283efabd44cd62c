import { Anchor, Text } from '@mantine/core';
import { useEffect, useState } from 'react';
import Markdown, { type Components } from 'react-markdown';
import remarkGfm from 'remark-gfm';
import styles from './part-view.module.css';

interface Part {
  text?: string;
  data?: unknown;
  raw?: string;
  url?: string;
  filename?: string;
  mediaType?: string;
}

/** Formats that cannot hold a script. SVG can: it is a file to download. */
const IMAGES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif'];
/** Longer texts are shown as they are: to make elements of them would stop the page. */
const MAX_MARKDOWN = 200_000;

/** What Markdown may become. Its images would be loaded from elsewhere, so they are links. HTML in it stays text. */
const COMPONENTS: Components = {
  img: ({ src, alt }) => (
    <Text span size="sm">
      [image: {alt === undefined || alt === '' ? String(src) : alt}]
    </Text>
  ),
  a: ({ href, children }) => (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  ),
};

/** A part of a message or an artifact. Agents and strangers have written it: nothing of it runs or loads anything. */
export function PartView({ part }: { part: Part }) {
  const { text, data, raw, url, mediaType = '' } = part;
  if (text !== undefined) {
    if (text.length > MAX_MARKDOWN || (mediaType !== '' && mediaType !== 'text/markdown'))
      return (
        <pre className={styles.raw} tabIndex={0}>
          {text}
        </pre>
      );
    return (
      <div className={styles.markdown}>
        <Markdown remarkPlugins={[remarkGfm]} components={COMPONENTS}>
          {text}
        </Markdown>
      </div>
    );
  }
  if (raw !== undefined) return <FileView raw={raw} part={part} />;
  if (url !== undefined) return <Text size="sm">File elsewhere: {url}</Text>;
  return <Json value={data} />;
}

/** JSON for people. */
export function Json({ value }: { value: unknown }) {
  return (
    <pre className={styles.raw} tabIndex={0}>
      {JSON.stringify(value, null, 2)}
    </pre>
  );
}

/** Bytes: an image, or a file to download. */
function FileView({ raw, part: { mediaType = '', filename = 'file' } }: { raw: string; part: Part }) {
  const [url, setUrl] = useState<string>();
  const isImage = IMAGES.includes(mediaType);
  useEffect(() => {
    const bytes = bytesOf(raw);
    if (!bytes) return undefined;
    // A browser shows no page of a type that it does not know: it only saves it.
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
