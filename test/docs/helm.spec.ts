import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { loadEnvironment } from '../../libs/config/src/index.js';
import { SECRET_FILE_NAMES, SETTING_NAMES } from '../../libs/config/src/settings.js';

const ROOT = join(__dirname, '../..');
const CHART = join(ROOT, 'deploy/helm/baton');
const read = (path: string): string => readFileSync(join(CHART, path), 'utf8');
const templates = readdirSync(join(CHART, 'templates')).map((name) => read(`templates/${name}`));

interface Container {
  image: string;
  command: string[];
  env: { name: string; value: string }[];
  envFrom: { secretRef: { name: string } }[];
  securityContext: object;
  lifecycle?: { preStop: { exec: { command: string[] } } };
}
interface Manifest {
  kind: string;
  metadata: { name: string; labels: Record<string, string>; annotations?: Record<string, string> };
  spec: Record<string, unknown> & {
    replicas?: number;
    groups?: { rules: { alert?: string; expr: string; annotations?: Record<string, string> }[] }[];
    triggers?: { metadata: { query: string; threshold: string } }[];
    selector?: { matchLabels?: Record<string, string> } & Record<string, unknown>;
    template?: {
      metadata: { labels: Record<string, string> };
      spec: { terminationGracePeriodSeconds: number; securityContext: object; containers: [Container] };
    };
  };
  data?: Record<string, string>;
}

describe('the chart', () => {
  it('has the release of Baton', () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    expect(parse(read('Chart.yaml'))).toMatchObject({ version, appVersion: version });
  });

  it('sets settings that there are, and starts programs that there are', () => {
    const names = templates.flatMap((text) =>
      [...text.matchAll(/name: ([A-Z][A-Z_]+),/g)].map(([, name]) => name!),
    );
    expect(names.length).toBeGreaterThan(8);
    expect(names.filter((name) => !SETTING_NAMES.includes(name))).toEqual([]);
    const programs = templates.flatMap((text) =>
      [...text.matchAll(/\bdist\/\S+?\.js/g)].map(([path]) => path),
    );
    expect(new Set(programs).size).toBe(4);
    const sources = programs.map((path) => path.replace('dist/', '').replace(/\.js$/, '.ts'));
    expect(sources.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  it('takes no secret as a setting, and none that it sets itself', () => {
    const schema = JSON.parse(read('values.schema.json')) as {
      properties: { settings: { propertyNames: { not: { enum: string[] } } } };
    };
    const refused = schema.properties.settings.propertyNames.not.enum;
    expect(refused.filter((name) => !SETTING_NAMES.includes(name))).toEqual([]);
    const secrets = SECRET_FILE_NAMES.map((name) => name.replace(/_FILE$/, ''));
    // These belong to the machine of an operator, or may be public.
    const elsewhere =
      /^(POSTGRES_PASSWORD|BATON_DATABASE_PASSWORD|BATON_TOKEN|BATON_OPERATOR_TOKEN|BATON_MASTER_KEY_COMMAND|GRPC_TLS_CERT)$/;
    // What is missing here: add it to the names that `settings` refuses in values.schema.json.
    expect(secrets.filter((name) => !refused.includes(name) && !elsewhere.test(name))).toEqual([]);
  });

  it('has the default grace times of Baton', () => {
    const { apiGraceMs, workerGraceMs, workerConcurrency } = loadEnvironment({
      DATABASE_URL: 'postgres://x/y',
    });
    expect(parse(read('values.yaml'))).toMatchObject({
      api: { graceMs: apiGraceMs },
      worker: { graceMs: workerGraceMs, concurrency: workerConcurrency },
    });
  });
});

const helm = ['helm', join(ROOT, '.baton/bin/helm')].find(
  (path) => spawnSync(path, ['version']).status === 0,
);
const withHelm: (name: string, tests: () => void) => void = helm
  ? describe
  : (name, tests) => describe.skip(`${name} (left out: there is no helm: .ci/chart fetches it)`, tests);

withHelm('what the chart renders', () => {
  const folder = mkdtempSync(join(tmpdir(), 'baton-chart-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  const run = (...args: string[]) =>
    spawnSync(
      helm ?? '',
      ['template', 'acme', CHART, '--namespace', 'agents', '--kube-version', '1.34.0', ...args],
      {
        encoding: 'utf8',
        maxBuffer: 16 * 1024 * 1024,
      },
    );
  const render = (file: string): Manifest[] => {
    const { status, stdout, stderr } = run('--values', join(CHART, 'ci', file));
    expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' });
    return parseAllDocuments(stdout)
      .map((document) => document.toJS() as Manifest | null)
      .filter((manifest) => manifest !== null);
  };
  const refusal = (values: object): string => {
    const file = join(folder, 'values.json');
    writeFileSync(file, JSON.stringify(values));
    return run('--values', file).stderr;
  };
  const find = (manifests: Manifest[], kind: string, name: string): Manifest =>
    manifests.find((one) => one.kind === kind && one.metadata.name === name)!;

  it('gives processes time to end: the pause, the grace time rounded up, and what they take after it', () => {
    const grace = (manifests: Manifest[], name: string) =>
      find(manifests, 'Deployment', name).spec.template?.spec.terminationGracePeriodSeconds;
    const few = render('minimal-values.yaml');
    expect([grace(few, 'acme-baton-api'), grace(few, 'acme-baton-worker')]).toEqual([5 + 5 + 15, 10 + 15]);
    const all = render('everything-values.yaml');
    expect([grace(all, 'acme-baton-api'), grace(all, 'acme-baton-worker')]).toEqual([10 + 46 + 15, 600 + 15]);
    const [container] = find(all, 'Deployment', 'acme-baton-api').spec.template!.spec.containers;
    expect(container.lifecycle?.preStop.exec.command).toEqual(['sleep', '10']);
  });

  it.each(readdirSync(join(CHART, 'ci')))('runs without rights and with valid settings, with %s', (file) => {
    const manifests = render(file);
    const pods = manifests.filter(({ kind }) => kind === 'Deployment' || kind === 'Job');
    expect(pods.length).toBeGreaterThanOrEqual(2);
    for (const { kind, spec } of pods) {
      const { securityContext, containers } = spec.template!.spec;
      expect(securityContext).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      });
      const [container] = containers;
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      const settings = Object.fromEntries(container.env.map(({ name, value }) => [name, value]));
      expect(container.env.filter(({ name }) => !SETTING_NAMES.includes(name))).toEqual([]);
      expect(() => loadEnvironment({ ...settings, DATABASE_URL: 'postgres://x/y' })).not.toThrow();
      expect(container.envFrom[0]).toEqual({ secretRef: { name: 'baton' } });
      if (kind === 'Deployment') expect(container.envFrom).toHaveLength(1);
      expect(spec.template!.metadata.labels).toMatchObject(spec.selector?.matchLabels ?? {});
    }
  });

  it('runs the image of its release, as the workflow of releases names it', () => {
    const { appVersion } = parse(read('Chart.yaml')) as { appVersion: string };
    const job = find(render('minimal-values.yaml'), 'Job', 'acme-baton-migrate');
    expect(job.spec.template?.spec.containers[0].image).toBe(`baton:v${appVersion}`);
  });

  it('migrates before anything else, with the role that owns the tables if there is one', () => {
    const job = find(render('everything-values.yaml'), 'Job', 'acme-baton-migrate');
    expect(job.metadata.annotations).toMatchObject({ 'helm.sh/hook': 'pre-install,pre-upgrade' });
    expect(job.spec.template?.spec.containers[0].envFrom.at(-1)).toEqual({
      secretRef: { name: 'baton-owner' },
    });
  });

  it('leaves the number of pods to what scales them, and asks Prometheus for metrics that there are', () => {
    const manifests = render('everything-values.yaml');
    for (const name of ['acme-baton-api', 'acme-baton-worker']) {
      expect(find(manifests, 'Deployment', name).spec.replicas).toBeUndefined();
    }
    const page = readFileSync(join(ROOT, 'docs/reference/metrics.md'), 'utf8');
    const { triggers = [] } = find(manifests, 'ScaledObject', 'acme-baton-worker').spec;
    expect(triggers.map(({ metadata }) => metadata.threshold)).toEqual(['5', '75']);
    for (const { metadata } of triggers) {
      const [metric = ''] = /baton_\w+/.exec(metadata.query) ?? [];
      expect(page).toContain(`| \`${metric}\``);
      expect(metadata.query).toContain('namespace="agents"');
    }
  });

  it('has all alerts and dashboards, as they are', () => {
    const manifests = render('everything-values.yaml');
    const rules = parse(readFileSync(join(ROOT, 'deploy/observability/baton.rules.yml'), 'utf8')) as {
      groups: { rules: { expr: string }[] }[];
    };
    const { groups = [] } = find(manifests, 'PrometheusRule', 'acme-baton').spec;
    const expressions = (all: { rules: { expr: string }[] }[]) =>
      all.flatMap((group) => group.rules.map(({ expr }) => expr));
    expect(expressions(groups)).toEqual(expressions(rules.groups));
    const urls = groups.flatMap((group) =>
      group.rules.flatMap(({ annotations }) => annotations?.runbook_url ?? []),
    );
    expect(urls.length).toBeGreaterThan(20);
    for (const url of urls)
      expect(url).toMatch(/^https:\/\/docs\.example\.com\/operating\/runbooks\.md#baton/);
    const dashboards = join(ROOT, 'deploy/observability/grafana/dashboards');
    const shipped = manifests.flatMap(({ kind, data }) =>
      kind === 'ConfigMap' && data ? Object.entries(data) : [],
    );
    expect(shipped.sort()).toEqual(
      readdirSync(dashboards).map((name) => [name, readFileSync(join(dashboards, name), 'utf8')]),
    );
  });

  it('refuses what it does not know, and secrets among the settings', () => {
    expect(refusal({})).toContain('existingSecret');
    expect(refusal({ existingSecret: 'baton', workers: {} })).toContain('workers');
    expect(refusal({ existingSecret: 'baton', settings: { DATABASE_URL: 'postgres://x' } })).toContain(
      'DATABASE_URL',
    );
    expect(refusal({ existingSecret: 'baton', worker: { autoscaling: { type: 'keda' } } })).toContain(
      'prometheusAddress',
    );
  });
});
