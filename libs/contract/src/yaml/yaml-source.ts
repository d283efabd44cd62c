import { isMap, isScalar, LineCounter, type Node, parseDocument } from 'yaml';

/** A YAML or JSON text with the line of each of its fields. */
export class YamlSource {
  private readonly lines = new LineCounter();
  private readonly document;

  constructor(text: string) {
    this.document = parseDocument(text, { lineCounter: this.lines, prettyErrors: false });
  }

  /** The syntax errors. */
  get faults(): { line: number; text: string }[] {
    return this.document.errors.map(({ message, pos: [start] }) => ({
      line: this.lineAt(start),
      text: message.replace(/[:.]$/, ''),
    }));
  }

  /** The parsed value. Undefined if the text has faults. */
  get value(): unknown {
    return this.document.errors.length > 0 ? undefined : (this.document.toJS() as unknown);
  }

  /**
   * The line of a field. For a missing field, the line of the nearest field around it.
   * @param path as errors write it, `config.agents[0].slug`, or its steps
   */
  lineOf(path: string | readonly string[]): number {
    let node: unknown = this.document.contents;
    let line = this.lineAt((node as Node | null)?.range?.[0] ?? 0);
    for (const step of typeof path === 'string' ? stepsOf(path) : path) {
      const found = childOf(node, step);
      if (!found) return line;
      line = this.lineAt(found.start);
      node = found.value;
    }
    return line;
  }

  private lineAt(offset: number): number {
    return this.lines.linePos(offset).line || 1;
  }
}

/** `config.agents[0]` is `config`, `agents`, `0`. */
const stepsOf = (path: string): string[] => path.split(/[.[\]]+/).filter((step) => step !== '');

/** Where a member begins, and its value. */
function childOf(node: unknown, step: string): { start: number; value: unknown } | undefined {
  if (isMap(node)) {
    const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === step);
    return pair && { start: (pair.key as Node).range?.[0] ?? 0, value: pair.value };
  }
  const items = (node as { items?: unknown[] } | null)?.items;
  const item = Array.isArray(items) ? (items[Number(step)] as Node | undefined) : undefined;
  return item && { start: item.range?.[0] ?? 0, value: item };
}
