import AxeBuilder from '@axe-core/playwright';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { NIGHTLY } from './nightly.js';
import { shareStack } from './shared-stack.js';
import { Stack, type StackOptions } from './stack.js';

/** The rules of WCAG that the pages follow. */
const WCAG = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

const isExecutable = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

/** The first is Chromium without what draws windows: the same pages cost half of the CPU. */
const NAMES = [
  'chromium-headless-shell',
  'chrome-headless-shell',
  'chromium',
  'chromium-browser',
  'google-chrome',
];

/** Chromium of this machine: CHROMIUM_PATH, or the first on PATH. */
const CHROMIUM = [
  process.env.CHROMIUM_PATH ?? [],
  ...NAMES.flatMap((name) => (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, name))),
]
  .flat()
  .find(isExecutable);

/** Tests with a browser. Without one they are skipped, and their title contains the reason. */
export function describeConsole(title: string, tests: () => void): void {
  if (CHROMIUM !== undefined) describe(title, tests);
  else describe.skip(`${title} (left out: there is no Chromium: install it, or set CHROMIUM_PATH)`, tests);
}

/** How a page is opened. */
export interface Visit {
  /** Signs in with this token. Unset: no user is signed in. */
  token?: string;
  /** Below `/console`, such as `/tasks?state=TASK_STATE_FAILED`. */
  path?: string;
  /** `baseURL`: the server as the browser reaches it, which may have a path. Default: the API. */
  context?: BrowserContextOptions;
  /** In a browser that has loaded nothing yet, and that the test may take offline. */
  isNew?: boolean;
}

/** One for each file of tests. */
let browser: Promise<Browser> | undefined;

const launch = (): Promise<Browser> =>
  (browser ??= chromium.launch({
    executablePath: CHROMIUM,
    args: ['--disable-dev-shm-usage'],
    timeout: 4 * 60_000,
  }));

afterAll(async () => (await browser)?.close());

/** Closes a page, if it is open, and deletes what it has stored beyond its end. */
async function leave(page: Page): Promise<void> {
  if (page.isClosed()) return;
  // A page that could not be loaded has no storage.
  await page.evaluate('try { localStorage.clear(); } catch {}');
  await page.close();
}

/**
 * A Baton with one browser: one for each file of tests. It notes what a page does that it must not do: an error in the console
 * of the browser, an exception, a violation of the Content-Security-Policy. `expectNoFaults` after each test fails for it.
 */
export class ConsoleStack {
  private readonly faults: string[] = [];
  private expected: RegExp[] = [];
  /** Pages that axe has checked. */
  private readonly checked = new Set<string>();
  /** By their options. What a page has loaded is in the cache of the next one: a seventh less CPU. */
  private readonly browsers = new Map<string, BrowserContext>();
  /** Of the running test. */
  private readonly newBrowsers: BrowserContext[] = [];
  private readonly pages: Page[] = [];

  private constructor(
    readonly stack: Stack,
    private readonly browser: Browser,
  ) {}

  static async start(options: Partial<StackOptions> = {}): Promise<ConsoleStack> {
    const [stack, browser] = await Promise.all([Stack.start({ driver: 'postgres', ...options }), launch()]);
    return new ConsoleStack(stack, browser);
  }

  /** One whose Baton the subjects of a file share (`shareStack`). It stops after the last test. */
  static share(env: Record<string, string> = {}): () => Promise<ConsoleStack> {
    const startStack = shareStack('postgres', env);
    return async () => {
      const [stack, browser] = await Promise.all([startStack(), launch()]);
      return new ConsoleStack(stack, browser);
    };
  }

  get url(): string {
    return this.stack.apis[0]!.url;
  }

  /**
   * A page until the end of the test. Sign-ins and drafts of pages are their own: they are in `sessionStorage`. Pages of one test
   * share what is in `localStorage`.
   */
  async open({ token, path = '/', context = {}, isNew = false }: Visit = {}): Promise<Page> {
    const url = context.baseURL ?? this.url;
    const page = await (await this.browserWith({ baseURL: url, ...context }, isNew)).newPage();
    this.pages.push(page);
    // A slow machine takes its time. An element that never comes is reported before Jest ends the test. TEST_PAGE_MS: less, while you write one.
    page.setDefaultTimeout(Number(process.env.TEST_PAGE_MS ?? 4 * 60_000));
    this.watch(page);
    if (token !== undefined) {
      const session = JSON.stringify({ kind: 'token', token });
      await page.addInitScript(
        `if (!sessionStorage.getItem('visited')) {
           sessionStorage.setItem('visited', 'yes');
           sessionStorage.setItem('baton.session', ${JSON.stringify(session)});
         }`,
      );
    }
    await page.goto(`${url}/console${path}`);
    return page;
  }

  private async browserWith(options: BrowserContextOptions, isNew: boolean): Promise<BrowserContext> {
    const key = JSON.stringify(options);
    const known = isNew ? undefined : this.browsers.get(key);
    if (known) return known;
    const context = await this.browser.newContext(options);
    if (isNew) this.newBrowsers.push(context);
    else this.browsers.set(key, context);
    return context;
  }

  /** Errors that the running test provokes, such as `/401/`. */
  expectFaults(...patterns: RegExp[]): void {
    this.expected.push(...patterns);
  }

  /**
   * Call it after each test. Closes its pages, each of which asks the API again every few seconds, and forgets what they have
   * stored.
   */
  async expectNoFaults(): Promise<void> {
    await Promise.all(this.newBrowsers.splice(0).map((context) => context.close()));
    await Promise.all(this.pages.splice(0).map(leave));
    await Promise.all([...this.browsers.values()].map((context) => context.clearCookies()));
    const faults = this.faults.filter((fault) => !this.expected.some((pattern) => pattern.test(fault)));
    this.faults.length = 0;
    this.expected = [];
    expect(faults).toEqual([]);
  }

  /**
   * Expects that axe finds no fault against WCAG AA in the page as it is now. By day it checks each page once in a file of tests, in each
   * colour scheme: axe took a third of the browser's CPU.
   */
  async expectAccessible(page: Page): Promise<void> {
    const { pathname } = new URL(page.url());
    const colours = await page.evaluate<string>('document.documentElement.dataset.mantineColorScheme');
    const name = `${pathname.replace(/[\da-f-]{36}/, ':id')} ${colours}`;
    if (!NIGHTLY && this.checked.has(name)) return;
    this.checked.add(name);
    const { violations } = await new AxeBuilder({ page })
      .options({ resultTypes: ['violations'] })
      .withTags(WCAG)
      // In its other mode axe opens a second page, to put together what it has found in frames of other origins. The console has
      // no frames.
      .setLegacyMode()
      .analyze();
    const found = violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => ({ id, html, failureSummary })),
    );
    expect(found).toEqual([]);
  }

  /** The same in light colours, and at night first in dark ones. Afterwards the page is light. */
  async expectAccessibleInBothSchemes(page: Page): Promise<void> {
    if (!NIGHTLY) return this.expectAccessible(page);
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.locator('html[data-mantine-color-scheme="dark"]').waitFor();
    await this.expectAccessible(page);
    await page.emulateMedia({ colorScheme: 'light' });
    await page.locator('html[data-mantine-color-scheme="light"]').waitFor();
    await this.expectAccessible(page);
  }

  /** The width of the page in pixels. Wider than its window: an element overflows. */
  async widthOf(page: Page): Promise<number> {
    return page.evaluate<number>('document.documentElement.scrollWidth');
  }

  /** Keeps a picture of the page for the docs, where CONSOLE_PICTURES names a folder (see CONTRIBUTING.md). */
  async picture(page: Page, name: string): Promise<void> {
    const folder = process.env.CONSOLE_PICTURES;
    if (folder === undefined) return;
    await page.evaluate('window.scrollTo(0, 0)');
    await page.screenshot({ path: join(folder, `${name}.png`), animations: 'disabled' });
  }

  async stop(): Promise<void> {
    await this.stack.stop();
  }

  private watch(page: Page): void {
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning')
        this.faults.push(`${message.text()} (${message.location().url})`);
    });
    page.on('pageerror', (error) => this.faults.push(error.stack ?? error.message));
  }
}
