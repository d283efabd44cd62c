import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';

const ROOT = join(__dirname, '../..');
const FOLDER = join(ROOT, 'deploy/observability');
const TESTS_OF_RULES = ['rules', 'slow-rules'].map((name) => `deploy/observability/${name}.test.yml`);

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

interface Rule {
  alert?: string;
  record?: string;
  expr: string;
  labels?: { severity: string };
  annotations?: Record<string, string>;
}
interface Panel {
  type: string;
  title: string;
  description?: string;
  targets?: { expr: string }[];
  fieldConfig?: { defaults: { unit?: string } };
}
interface Dashboard {
  uid: string;
  title: string;
  panels: Panel[];
}

const rules = (
  parse(read('deploy/observability/baton.rules.yml')) as { groups: { rules: Rule[] }[] }
).groups.flatMap((group) => group.rules);
const alerts = rules.filter((rule) => rule.alert !== undefined);
const dashboards = readdirSync(join(FOLDER, 'grafana/dashboards')).map(
  (name) => JSON.parse(readFileSync(join(FOLDER, 'grafana/dashboards', name), 'utf8')) as Dashboard,
);
const panels = dashboards.flatMap(({ title, panels: all }) =>
  all.filter(({ type }) => type !== 'row').map((panel) => [`${title}: ${panel.title}`, panel] as const),
);

/** The labels of every metric that the code declares, by name. Prometheus adds those of all series. */
const ADDED = ['namespace', 'job', 'instance', 'le'];
const labels = new Map<string, string[]>();
const sources = ['libs', 'apps'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !/spec\.ts$|(^|\/)(generated|testing)\//.test(name))
    .map((name) => read(join(folder, name))),
);
for (const source of sources) {
  const declared =
    /\b(?:counter|gauge|histogram)\(\s*'(baton_\w+)',\s*'(?:[^'\\]|\\.)*'(?:,\s*\[([^\]]*)\])?/g;
  for (const [, name = '', list = ''] of source.matchAll(declared)) {
    labels.set(name, [...[...list.matchAll(/'(\w+)'/g)].map(([, label = '']) => label), ...ADDED]);
  }
}
const metricOf = (series: string): string =>
  labels.has(series) ? series : series.replace(/_(bucket|count|sum)$/, '');
/** Text without what is in quotes: values of labels. */
const bare = (expr: string): string => expr.replaceAll(/"[^"]*"/g, '""');
const seriesIn = (expr: string): string[] =>
  [...bare(expr).matchAll(/\bbaton_\w+/g)].map(([name]) => metricOf(name));

it('finds every metric of the code, as the page does', () => {
  const documented = [...read('docs/reference/metrics.md').matchAll(/^\| `(baton_\w+)`/gm)].map(
    ([, name]) => name,
  );
  expect([...labels.keys()].sort()).toEqual(documented.sort());
});

describe.each([
  ...rules.map(({ alert, record, expr }) => [alert ?? record ?? '', [expr]] as const),
  ...panels.map(([name, { targets = [] }]) => [name, targets.map(({ expr }) => expr)] as const),
])('%s', (_, exprs) => {
  it('asks for metrics and labels that there are', () => {
    expect(exprs.length).toBeGreaterThan(0);
    for (const expr of exprs) {
      const used = seriesIn(expr);
      expect(used.filter((name) => !labels.has(name))).toEqual([]);
      for (const [, series = '', matchers = ''] of bare(expr).matchAll(/\b(baton_\w+)\{([^}]*)\}/g)) {
        const asked = [...matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label);
        const known = labels.get(metricOf(series)) ?? [];
        expect([series, asked.filter((label) => !known.includes(label))]).toEqual([series, []]);
      }
      const grouped = [...bare(expr).matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, list = '']) =>
        list.split(', ').filter(Boolean),
      );
      const known = [...ADDED, ...used.flatMap((name) => labels.get(name) ?? [])];
      expect(grouped.filter((label) => !known.includes(label))).toEqual([]);
    }
  });
});

describe('the dashboards', () => {
  it('show every metric', () => {
    const shown = new Set(
      panels.flatMap(([, { targets = [] }]) => targets.flatMap(({ expr }) => seriesIn(expr))),
    );
    expect([...labels.keys()].filter((name) => !shown.has(name))).toEqual([]);
  });

  it.each(panels)('%s has a description and a unit', (_, panel) => {
    expect(panel.description).toMatch(/\.$/);
    expect(panel.fieldConfig?.defaults.unit).toBeDefined();
  });

  it('have names of their own', () => {
    expect(new Set(dashboards.map(({ uid }) => uid)).size).toBe(dashboards.length);
  });
});

describe('the alerts', () => {
  const page = read('docs/operating/runbooks.md');
  const runbooks = page.split(/^## /m).slice(1);

  it('have a runbook each, and no runbook is without an alert', () => {
    expect(runbooks.map((text) => text.split('\n')[0]).sort()).toEqual(
      alerts.map(({ alert }) => alert).sort(),
    );
  });

  it.each(alerts.map((rule) => [rule.alert!, rule] as const))('%s leads to its runbook', (name, rule) => {
    expect(rule.annotations).toEqual({
      summary: expect.any(String),
      description: expect.any(String),
      runbook_url: `docs/operating/runbooks.md#${name.toLowerCase()}`,
    });
    expect(page).toContain(`| \`${rule.labels?.severity ?? ''}\` `);
    const text = runbooks.find((each) => each.startsWith(`${name}\n`));
    for (const part of ['Means', 'Look', 'Do']) expect(text).toContain(`**${part}.** `);
  });

  it('are tested, each of them', () => {
    const tests = TESTS_OF_RULES.map(read).join('');
    expect(alerts.map(({ alert }) => alert).filter((name) => !tests.includes(`"${name}"`))).toEqual([]);
  });
});

const promtool = ['promtool', join(ROOT, '.baton/bin/promtool')].find(
  (path) => spawnSync(path, ['--version']).status === 0,
);
const title = 'with Prometheus, the rules and panels';
const withPromtool: (name: string, tests: () => void) => void = promtool
  ? describe
  : (name, tests) =>
      describe.skip(`${name} (left out: there is no promtool: apt-get install prometheus)`, tests);

withPromtool(title, () => {
  // With the default of Go a fifth of its CPU time is that of the garbage collector.
  const check = (...args: string[]): { status: number | null; output: string } => {
    const options = { encoding: 'utf8', cwd: ROOT, env: { ...process.env, GOGC: '400' } } as const;
    const { status, stdout, stderr } = spawnSync(promtool ?? '', args, options);
    return { status, output: status === 0 ? '' : stdout + stderr };
  };

  it('fire when they should, and not when they should not', () => {
    expect(check('test', 'rules', ...TESTS_OF_RULES)).toEqual({ status: 0, output: '' });
  });

  it('are PromQL', () => {
    const folder = mkdtempSync(join(tmpdir(), 'baton-panels-'));
    try {
      const exprs = panels.flatMap(([, { targets = [] }]) => targets.map(({ expr }) => expr));
      const asRules = exprs.map((expr, number) => ({
        record: `panel:${String(number)}`,
        expr: expr.replaceAll('$__rate_interval', '1m'),
      }));
      // JSON is YAML.
      const file = join(folder, 'panels.yml');
      writeFileSync(file, JSON.stringify({ groups: [{ name: 'panels', rules: asRules }] }));
      expect(check('check', 'rules', file)).toEqual({ status: 0, output: '' });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
