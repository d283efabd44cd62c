/** Icons of the navigation: lines of an SVG of 24 × 24. Each has a word with its meaning beside it. */
export const ICONS = {
  home: 'M4 11.5 12 4l8 7.5V20h-5v-5.5H9V20H4z',
  agent:
    'M6 9h12a2 2 0 0 1 2 2v7a2 2 0 0 1-2 2H6a2 2 0 0 1-2-2v-7a2 2 0 0 1 2-2zM12 9V4.5M9 13.5v2M15 13.5v2',
  talk: 'M5 5h14a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1h-8l-5 4v-4H5a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1z',
  tasks: 'M10 6h10M10 12h10M10 18h10M4 6l1.2 1.2L7.4 5M4 12l1.2 1.2L7.4 11M4 18l1.2 1.2L7.4 17',
  inbox: 'M4 13.5 7 5h10l3 8.5V19H4zM4 13.5h5a3 3 0 0 0 6 0h5',
  clock: 'M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 8v4.5l3 2',
  webhook: 'M6 18 17.5 6.5M9 6h9v9',
  bulk: 'm12 4 8 4-8 4-8-4zM4 12l8 4 8-4M4 16l8 4 8-4',
  letter: 'M4 6h16v12H4zM4 7l8 6 8-6',
  chart: 'M5 20v-6M12 20V5M19 20v-10',
  key: 'M8 12a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM11 13l8.5-8.5M16 8l3 3',
  person: 'M12 4.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM5 20a7 7 0 0 1 14 0',
  token: 'M5 7h14a1 1 0 0 1 1 1v8a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V8a1 1 0 0 1 1-1zM8 12h1M12 12h5',
  audit: 'M6 4h9l4 4v12H6zM10 12h5M10 16h5',
  worker: 'M7 7h10v10H7zM10 4v3M14 4v3M10 17v3M14 17v3M4 10h3M4 14h3M17 10h3M17 14h3',
  queue: 'M4 6h16M4 12h16M4 18h10',
  people:
    'M9 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM3.5 19a5.5 5.5 0 0 1 11 0M16 5.5a3 3 0 0 1 0 5M17.5 14a5 5 0 0 1 3 5',
  find: 'M11 5a6 6 0 1 0 0 12 6 6 0 0 0 0-12zM15.5 15.5 20 20',
} as const;

export type IconName = keyof typeof ICONS;
