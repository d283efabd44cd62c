import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { parse as parseAddress, parseCIDR } from 'ipaddr.js';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { loadEnvironment } from '../../libs/config/src/index.js';
import { SECRET_FILE_NAMES, SETTING_NAMES } from '../../libs/config/src/settings.js';

const ROOT = join(__dirname, '../..');
const CHART = join(ROOT, 'deploy/helm/baton');
const read = (path: string): string => readFileSync(join(CHART, path), 'utf8');
const templates = readdirSync(join(CHART, 'templates')).map((name) => read(`templates/${name}`));

interface Container {
  name: string;
  image: string;
  command: string[];
  env: { name: string; value?: string; valueFrom?: object }[];
  envFrom: { secretRef?: { name: string } }[];
  volumeMounts: { name: string; mountPath: string; readOnly?: boolean }[];
  securityContext: object;
  lifecycle?: { preStop: { exec: { command: string[] } } };
}
interface Metadata {
  labels: Record<string, string>;
  annotations?: Record<string, string>;
}
interface PodSpec {
  serviceAccountName?: string;
  terminationGracePeriodSeconds: number;
  securityContext: object;
  initContainers?: Container[];
  containers: [Container, ...Container[]];
  volumes: ({ name: string } & Record<string, unknown>)[];
  topologySpreadConstraints?: { topologyKey: string; labelSelector: { matchLabels: object } }[];
  nodeSelector?: object;
  priorityClassName?: string;
}
interface Manifest {
  kind: string;
  metadata: Metadata & { name: string };
  spec: Record<string, unknown> & {
    replicas?: number;
    groups?: { rules: { alert?: string; expr: string; annotations?: Record<string, string> }[] }[];
    triggers?: { metadata: { query: string; threshold: string } }[];
    selector?: { matchLabels?: Record<string, string> } & Record<string, unknown>;
    template?: { metadata: Metadata; spec: PodSpec };
    egress?: { to?: { ipBlock?: { cidr: string; except?: string[] } }[]; ports?: { port: number }[] }[];
    ingress?: object[];
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
    const ofNode = 'NODE_EXTRA_CA_CERTS';
    expect(names.filter((name) => !SETTING_NAMES.includes(name) && name !== ofNode)).toEqual([]);
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
    const { status, stdout, stderr } = run('--values', resolve(CHART, 'ci', file));
    expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' });
    return parseAllDocuments(stdout)
      .map((document) => document.toJS() as Manifest | null)
      .filter((manifest) => manifest !== null);
  };
  /** @param values as an object, or as JSON with numbers that no double holds */
  const fileOf = (values: object | string): string => {
    const file = join(folder, 'values.json');
    writeFileSync(file, typeof values === 'string' ? values : JSON.stringify(values));
    return file;
  };
  const renderValues = (values: object): Manifest[] => render(fileOf(values));
  const refusal = (values: object | string): string => run('--values', fileOf(values)).stderr;
  const find = (manifests: Manifest[], kind: string, name: string): Manifest =>
    manifests.find((one) => one.kind === kind && one.metadata.name === name)!;

  const podOf = (manifests: Manifest[], component: string) =>
    find(manifests, component === 'migrate' ? 'Job' : 'Deployment', `acme-baton-${component}`).spec.template!;
  const settingsOf = ({ env }: Container) => Object.fromEntries(env.map(({ name, value }) => [name, value]));
  const COMPONENTS = ['api', 'worker', 'migrate'];

  it('gives processes the numbers and texts of the settings as they are written', () => {
    const manifests = renderValues({
      existingSecret: 'baton',
      settings: {
        LIMIT_RETENTION_DAYS: 1.9,
        OTEL_TRACES_SAMPLER_ARG: 0.05,
        LIMIT_STORED_BYTES: 10_737_418_240,
        LIMIT_EVENT_BYTES: Number.MAX_SAFE_INTEGER,
        LIMIT_RUNS_AT_ONCE: 1_000_000,
        LIMIT_AGENTS: 0,
        AUDIT_STDOUT: true,
        CONSOLE_ENABLED: false,
        OTEL_SERVICE_NAME: '0123',
        OTEL_RESOURCE_ATTRIBUTES: '1e3',
        MODEL_PRICES: '{"a":1}',
        CORS_ORIGINS: 'yes',
        LOG_LEVEL: 'null',
        INDEX_MODEL: 'a "b" \\ é <c>\nd: $e {{ f }}',
      },
      worker: { concurrency: 10_000, graceMs: 86_400_000 },
      api: { graceMs: 3_600_000 },
      migrate: { activeDeadlineSeconds: 1_000_000 },
    });
    for (const component of COMPONENTS) {
      expect(settingsOf(podOf(manifests, component).spec.containers[0])).toMatchObject({
        LIMIT_RETENTION_DAYS: '1.9',
        OTEL_TRACES_SAMPLER_ARG: '0.05',
        LIMIT_STORED_BYTES: '10737418240',
        LIMIT_EVENT_BYTES: '9007199254740991',
        LIMIT_RUNS_AT_ONCE: '1000000',
        LIMIT_AGENTS: '0',
        AUDIT_STDOUT: 'true',
        CONSOLE_ENABLED: 'false',
        OTEL_SERVICE_NAME: '0123',
        OTEL_RESOURCE_ATTRIBUTES: '1e3',
        MODEL_PRICES: '{"a":1}',
        CORS_ORIGINS: 'yes',
        LOG_LEVEL: 'null',
        INDEX_MODEL: 'a "b" \\ é <c>\nd: $e {{ f }}',
        WORKER_CONCURRENCY: '10000',
        WORKER_GRACE_MS: '86400000',
        API_GRACE_MS: '3600000',
      });
    }
    expect(find(manifests, 'Job', 'acme-baton-migrate').spec.activeDeadlineSeconds).toBe(1_000_000);
    // YAML would change its last digit.
    const tooLarge = refusal('{"existingSecret":"baton","settings":{"LIMIT_STORED_BYTES":9007199254740993}}');
    expect(tooLarge).toContain('/settings/LIMIT_STORED_BYTES');
  });

  it('gives all pods what is for all, and adds what is for one kind', () => {
    const manifests = render('everything-values.yaml');
    const [api, worker, migrate] = COMPONENTS.map((component) => podOf(manifests, component));
    for (const { metadata, spec } of [api!, worker!, migrate!]) {
      expect(metadata.labels).toMatchObject({ team: 'agents', 'app.kubernetes.io/name': 'baton' });
      expect(spec.initContainers).toMatchObject([{ name: 'database-proxy', restartPolicy: 'Always' }]);
      expect(spec).toMatchObject({ imagePullSecrets: [{ name: 'registry' }] });
      const [container] = spec.containers;
      expect(container.env).toContainEqual({
        name: 'DATABASE_URL',
        valueFrom: { secretKeyRef: { name: 'postgres-app', key: 'uri' } },
      });
      expect(container.envFrom).toContainEqual({ configMapRef: { name: 'more-settings', optional: true } });
      expect(container.volumeMounts).toContainEqual({ name: 'sockets', mountPath: '/sockets' });
      const names = spec.volumes.map(({ name }) => name);
      expect(new Set(names).size).toBe(names.length);
      expect(container.volumeMounts.filter(({ name }) => !names.includes(name))).toEqual([]);
    }
    expect(api!.metadata.labels.tier).toBe('front');
    expect(COMPONENTS.map((name) => podOf(manifests, name).metadata.annotations)).toEqual([
      { 'example.com/a': 'api' },
      { 'example.com/a': 'b' },
      { 'example.com/a': 'b', 'example.com/kind': 'migration' },
    ]);
    const [main, ...beside] = api!.spec.containers;
    expect(main.env).toContainEqual({ name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } });
    expect(main.volumeMounts).toContainEqual({
      name: 'certificate',
      mountPath: '/certificate',
      readOnly: true,
    });
    expect(beside.map(({ name }) => name)).toEqual(['access-log']);
    expect(api!.spec.priorityClassName).toBe('system-cluster-critical');
    expect(worker!.spec.containers[0].envFrom).toContainEqual({
      secretRef: { name: 'models', optional: true },
    });
    expect(worker!.spec.containers[0].volumeMounts).toContainEqual({
      name: 'agents',
      mountPath: '/agents',
      readOnly: true,
    });
    expect(settingsOf(worker!.spec.containers[0]).BATON_AGENTS_DIR).toBe('/agents');
    expect(migrate!.spec).toMatchObject({
      nodeSelector: { pool: 'agents' },
      serviceAccountName: 'migrations',
    });
    expect(settingsOf(migrate!.spec.containers[0]).OTEL_RESOURCE_ATTRIBUTES).toBe('kind=migration');
  });

  it('spreads pods over nodes and zones, or as the values say, with the selector of their kind', () => {
    const spreadOf = (file: string, component: string) =>
      podOf(render(file), component).spec.topologySpreadConstraints!;
    for (const component of ['api', 'worker']) {
      const spread = spreadOf('minimal-values.yaml', component);
      expect(spread.map(({ topologyKey }) => topologyKey)).toEqual([
        'kubernetes.io/hostname',
        'topology.kubernetes.io/zone',
      ]);
      for (const { labelSelector } of spread)
        expect(labelSelector.matchLabels).toMatchObject({ 'app.kubernetes.io/component': component });
    }
    expect(spreadOf('everything-values.yaml', 'api')).toEqual([
      {
        maxSkew: 2,
        topologyKey: 'example.com/rack',
        whenUnsatisfiable: 'DoNotSchedule',
        labelSelector: {
          matchLabels: {
            'app.kubernetes.io/name': 'baton',
            'app.kubernetes.io/instance': 'acme',
            'app.kubernetes.io/component': 'api',
          },
        },
      },
    ]);
  });

  it.each([
    ['secret', { secret: { secretName: 'authority' } }],
    ['configMap', { configMap: { name: 'authority' } }],
  ])('has every process trust the private authority of a %s', (kind, volume) => {
    const manifests = renderValues({
      existingSecret: 'baton',
      caCertificates: { [kind]: 'authority', key: 'root.pem' },
    });
    for (const component of COMPONENTS) {
      const { containers, volumes } = podOf(manifests, component).spec;
      const file = settingsOf(containers[0]).NODE_EXTRA_CA_CERTS ?? '';
      const mount = containers[0].volumeMounts.find(({ mountPath }) => file === `${mountPath}/root.pem`);
      expect(mount?.readOnly).toBe(true);
      expect(volumes).toContainEqual({ name: mount?.name, ...volume });
    }
    const [first] = podOf(render('minimal-values.yaml'), 'api').spec.containers;
    expect(settingsOf(first)).not.toHaveProperty('NODE_EXTRA_CA_CERTS');
  });

  it('listens on IPv6 and IPv4, or where the values say', () => {
    const listening = (manifests: Manifest[]) => {
      const { HOST, MANAGEMENT_HOST } = settingsOf(podOf(manifests, 'api').spec.containers[0]);
      return [HOST, MANAGEMENT_HOST, settingsOf(podOf(manifests, 'worker').spec.containers[0]).HOST];
    };
    expect(listening(render('minimal-values.yaml'))).toEqual(['::', '::', '::']);
    const ipv4 = renderValues({ existingSecret: 'baton', host: '0.0.0.0', ipFamilies: ['IPv4'] });
    expect(listening(ipv4)).toEqual(['0.0.0.0', '0.0.0.0', '0.0.0.0']);
    for (const { spec } of ipv4.filter(({ kind }) => kind === 'Service'))
      expect(spec.ipFamilies).toEqual(['IPv4']);
    const services = render('everything-values.yaml').filter(({ kind }) => kind === 'Service');
    expect(services.map(({ spec }) => spec.ipFamilyPolicy)).toEqual([
      'PreferDualStack',
      'PreferDualStack',
      'PreferDualStack',
    ]);
  });

  it('lets processes call public addresses of both families, and no others', () => {
    const manifests = render('minimal-values.yaml');
    for (const component of ['api', 'worker']) {
      const { egress = [] } = find(manifests, 'NetworkPolicy', `acme-baton-${component}`).spec;
      const blocks = egress.flatMap(({ to = [] }) => to.flatMap(({ ipBlock }) => ipBlock ?? []));
      const mayCall = (text: string) => {
        const address = parseAddress(text);
        const isIn = (cidr: string) => {
          const [network, bits] = parseCIDR(cidr);
          return network.kind() === address.kind() && address.match(network, bits);
        };
        return blocks.some(({ cidr, except = [] }) => isIn(cidr) && !except.some(isIn));
      };
      const reached = ['1.1.1.1', '52.0.0.1', '2606:4700::1111', '64:ff9b::101:101'];
      expect(reached.filter((address) => !mayCall(address))).toEqual([]);
      const hidden = [
        '10.1.2.3',
        '100.64.0.1',
        '168.63.129.16',
        '169.254.169.254',
        '172.20.0.1',
        '192.168.1.1',
      ];
      const behindNat64 = hidden.map((address) => {
        const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
        return `64:ff9b::${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
      });
      const ipv6 = ['fd00:ec2::254', 'fc00::1', 'fe80::1', '::ffff:10.0.0.1', 'fec0::1'];
      expect([...hidden, ...behindNat64, ...ipv6].filter(mayCall)).toEqual([]);
    }
  });

  it('adds further rules of the network: what sidecars call, also those of migrations, and what may reach them', () => {
    const manifests = render('everything-values.yaml');
    const rulesOf = (component: string) => find(manifests, 'NetworkPolicy', `acme-baton-${component}`).spec;
    for (const component of COMPONENTS)
      expect(rulesOf(component).egress).toContainEqual({
        to: [{ namespaceSelector: {} }],
        ports: [{ port: 4318 }],
      });
    expect(rulesOf('api').ingress).toContainEqual({ ports: [{ port: 9999 }] });
    expect(rulesOf('migrate').ingress).toEqual([]);
  });

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
      const settings = settingsOf(container);
      const others = ['NODE_EXTRA_CA_CERTS', 'POD'];
      expect(
        Object.keys(settings).filter((name) => !SETTING_NAMES.includes(name) && !others.includes(name)),
      ).toEqual([]);
      expect(new Set(container.env.map(({ name }) => name)).size).toBe(container.env.length);
      expect(() => loadEnvironment({ ...settings, DATABASE_URL: 'postgres://x/y' })).not.toThrow();
      expect(container.envFrom[0]).toEqual({ secretRef: { name: 'baton' } });
      const secrets = container.envFrom.map(({ secretRef }) => secretRef?.name);
      if (kind === 'Deployment') expect(secrets).not.toContain('baton-owner');
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

  it('refuses unknown values, and secrets among the settings', () => {
    expect(refusal({})).toContain('existingSecret');
    expect(refusal({ existingSecret: 'baton', workers: {} })).toContain('workers');
    expect(refusal({ existingSecret: 'baton', settings: { DATABASE_URL: 'postgres://x' } })).toContain(
      'DATABASE_URL',
    );
    expect(refusal({ existingSecret: 'baton', worker: { autoscaling: { type: 'keda' } } })).toContain(
      'prometheusAddress',
    );
    const twice = { existingSecret: 'baton', settings: { LOG_LEVEL: 'debug' } };
    for (const extra of [
      { extraEnv: [{ name: 'LOG_LEVEL', value: 'info' }] },
      { extraEnv: [{ name: 'A' }], worker: { extraEnv: [{ name: 'A' }] } },
      { migrate: { extraEnv: [{ name: 'HOST', value: '::1' }] } },
      { caCertificates: { secret: 'a' }, extraEnv: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/ca' }] },
    ])
      expect(refusal({ ...twice, ...extra })).toMatch(
        /extraEnv: [A-Z_]+ has a value already\. Set it in one/,
      );
    expect(refusal({ existingSecret: 'baton', caCertificates: { secret: 'a', configMap: 'b' } })).toContain(
      'caCertificates: set secret or configMap, and not both',
    );
    expect(refusal({ existingSecret: 'baton', api: { extraVolumeMounts: [{ name: 'a' }] } })).toContain(
      'mountPath',
    );
  });
});
