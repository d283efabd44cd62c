import { type FileForms, type ShownFile, typeOf } from './tool-files.js';
import type { ToolResult } from './tools/tool-sources.js';

/** Maximum size of a file for a model. Anthropic accepts 5 MB in Base64, the others more. */
const MAX_FILE_CHARACTERS = 5_000_000;
/** Maximum size of the files of one request in Base64: Google accepts requests of 20 MB, and a worker holds several. */
const MAX_CHARACTERS = 8_000_000;
/** With more images in a request, Anthropic accepts only small ones. */
const MAX_FILES = 20;

/** Chooses the files that a model is shown in one request, the newest first. */
export class FileChoice {
  private characters = 0;
  private count = 0;

  constructor(private readonly forms: FileForms) {}

  /** @returns the files of a result at their indexes, without those that are not shown */
  choose({ files = [] }: ToolResult): (ShownFile | undefined)[] {
    return files.map((file) => {
      const mediaType = typeOf(file);
      const place = (['result', 'message'] as const).find((each) => this.forms[each]?.includes(mediaType));
      const { length } = file.base64;
      const fits = length <= MAX_FILE_CHARACTERS && this.characters + length <= MAX_CHARACTERS;
      if (!place || !fits || this.count === MAX_FILES) return undefined;
      this.characters += length;
      this.count += 1;
      return { ...file, mediaType, place };
    });
  }
}
