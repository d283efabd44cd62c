import { Alert, Badge, createTheme, type CSSVariablesResolver, NavLink } from '@mantine/core';

/** Colours are dark enough to be read on the background of either scheme (WCAG AA). */
export const theme = createTheme({
  primaryColor: 'blue',
  primaryShade: { light: 8, dark: 8 },
  autoContrast: true,
  fontFamily: 'system-ui, sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace',
  cursorType: 'pointer',
  respectReducedMotion: true,
  components: {
    // The kit writes the title in its colour, which is too pale on the background of the same colour.
    Alert: Alert.extend({
      styles: {
        title: { color: 'var(--mantine-color-text)' },
        label: { color: 'var(--mantine-color-text)' },
      },
    }),
    // The same, while the pointer is on the entry of the page that is shown.
    NavLink: NavLink.extend({ styles: { label: { color: 'var(--mantine-color-text)' } } }),
    // The kit lets a narrow column cut its text.
    Badge: Badge.extend({ styles: { root: { minWidth: 'max-content' } } }),
  },
});

/** The kit's own grey for hints and its red for errors are too pale on either background. */
export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': 'var(--mantine-color-gray-7)',
    '--mantine-color-placeholder': 'var(--mantine-color-gray-7)',
    '--mantine-color-error': 'var(--mantine-color-red-9)',
  },
  dark: {
    '--mantine-color-dimmed': 'var(--mantine-color-dark-1)',
    '--mantine-color-placeholder': 'var(--mantine-color-dark-1)',
    '--mantine-color-error': 'var(--mantine-color-red-4)',
    // The kit's own backgrounds of what waits and of errors are as strong as a filled button.
    '--mantine-color-orange-light': 'rgba(253, 126, 20, 0.15)',
    '--mantine-color-red-light': 'rgba(250, 82, 82, 0.15)',
  },
});
