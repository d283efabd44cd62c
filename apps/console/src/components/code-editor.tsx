import { autocompletion, type CompletionSource } from '@codemirror/autocomplete';
import { yaml } from '@codemirror/lang-yaml';
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { lintGutter, setDiagnostics } from '@codemirror/lint';
import { unifiedMergeView } from '@codemirror/merge';
import { EditorState, type Extension } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { useComputedColorScheme } from '@mantine/core';
import { basicSetup } from 'codemirror';
import { getNonce } from 'get-nonce';
import { useEffect, useRef } from 'react';

/** Something wrong in a line of a text. Lines count from 1. */
export interface Problem {
  line: number;
  message: string;
  severity: 'error' | 'warning';
}

/** Colours that can be read on the background of either scheme (WCAG AA). */
const COLOURS = syntaxHighlighting(
  HighlightStyle.define([
    { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'light-dark(#0b4f8a, #9ecbff)' },
    { tag: [tags.string, tags.content], color: 'light-dark(#1d5c2e, #a5d6a7)' },
    { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: 'light-dark(#8a3200, #ffcc99)' },
    { tag: [tags.comment, tags.meta], color: 'light-dark(#5a5a5a, #b0b0b0)' },
  ]),
);

const layout = (isDark: boolean): Extension =>
  EditorView.theme(
    {
      '&': { border: '1px solid var(--mantine-color-default-border)', fontSize: '0.85rem' },
      '&.cm-focused': { outline: '2px solid var(--mantine-primary-color-filled)' },
      '.cm-scroller': {
        minHeight: '12rem',
        maxHeight: '36rem',
        fontFamily: 'var(--mantine-font-family-monospace)',
      },
    },
    { dark: isDark },
  );

interface Props {
  /** What a screen reader calls it. */
  label: string;
  value: string;
  /** Unset: the text cannot be changed. */
  onChange?: (value: string) => void;
  problems?: readonly Problem[];
  completions?: CompletionSource;
  /** The text to compare with: lines that it does not have are marked, and those that are gone are shown. */
  original?: string;
}

/** An editor for YAML. It marks problems at their lines. The tab key leaves it. */
export function CodeEditor({ label, value, onChange, problems = [], completions, original }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  // A new editor has no cursor: what changes while the user types is looked up when it is needed.
  const latest = useRef({ value, onChange, problems, completions });
  latest.current = { value, onChange, problems, completions };
  const isDark = useComputedColorScheme('light') === 'dark';
  const isFixed = onChange === undefined;

  useEffect(() => {
    const editor = new EditorView({
      parent: host.current ?? undefined,
      state: EditorState.create({
        doc: latest.current.value,
        extensions: [
          EditorView.cspNonce.of(getNonce() ?? ''),
          basicSetup,
          yaml(),
          COLOURS,
          layout(isDark),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
          isFixed
            ? [EditorState.readOnly.of(true), EditorView.editable.of(false)]
            : [
                lintGutter(),
                autocompletion({ override: [(context) => latest.current.completions?.(context) ?? null] }),
              ],
          original === undefined
            ? []
            : unifiedMergeView({
                original,
                mergeControls: false,
                collapseUnchanged: { margin: 3, minSize: 6 },
              }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.onChange?.(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = editor;
    mark(editor, latest.current.problems);
    return () => editor.destroy();
  }, [label, isDark, isFixed, original]);

  // A text that was not typed here.
  useEffect(() => {
    const editor = view.current;
    if (!editor || editor.state.doc.toString() === value) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } });
  }, [value]);

  useEffect(() => {
    if (view.current) mark(view.current, problems);
  }, [problems]);

  return <div ref={host} />;
}

function mark(editor: EditorView, problems: readonly Problem[]): void {
  const { doc } = editor.state;
  const diagnostics = problems.map(({ line, message, severity }) => {
    const { from, to } = doc.line(Math.min(Math.max(line, 1), doc.lines));
    return { from, to, message, severity };
  });
  editor.dispatch(setDiagnostics(editor.state, diagnostics));
}
