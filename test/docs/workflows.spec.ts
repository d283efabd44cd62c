import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';

const ROOT = join(__dirname, '../..');
const FOLDER = join(ROOT, '.github/workflows');

interface Step {
  uses?: string;
  run?: string;
  with?: Record<string, unknown>;
}
interface Job {
  needs?: string;
  permissions?: Record<string, string>;
  strategy?: { matrix: { include?: Record<string, string>[] } };
  steps: Step[];
}
interface Workflow {
  on: Record<string, unknown>;
  permissions: Record<string, string>;
  jobs: Record<string, Job>;
}

const read = (name: string): Workflow => parse(readFileSync(join(FOLDER, name), 'utf8')) as Workflow;
const names = readdirSync(FOLDER);

describe.each(names)('the workflow %s', (name) => {
  const { permissions, jobs } = read(name);
  const steps = Object.values(jobs).flatMap((job) => job.steps);

  it('may only read, except for jobs with rights of their own', () => {
    expect(permissions).toEqual({ contents: 'read' });
    const writing = Object.entries(jobs).filter(([, job]) => job.permissions);
    expect(writing.map(([job]) => job)).toEqual(name === 'release.yml' ? ['release'] : []);
  });

  it('takes actions of known publishers only, each by its commit, with the version beside it', () => {
    const text = readFileSync(join(FOLDER, name), 'utf8');
    const used = text.split('\n').filter((line) => /\buses:/.test(line));
    expect(used.length).toBe(steps.filter(({ uses }) => uses !== undefined).length);
    const pinned = /uses: (actions|docker)\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/;
    expect(used.filter((line) => !pinned.test(line))).toEqual([]);
  });

  it('names images by their digests', () => {
    const text = readFileSync(join(FOLDER, name), 'utf8');
    const images = [...text.matchAll(/\b(?:node|anchore\/\w+):[\w.-]+(?<digest>@sha256:[0-9a-f]{64})?/g)];
    expect(images).toHaveLength(name === 'release.yml' ? 2 : 0);
    for (const { groups } of images) expect(groups?.digest).toBeDefined();
  });

  it('runs files and scripts that there are', () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>;
    };
    const runs = steps.flatMap(({ run }) => run ?? []).join('\n');
    for (const [, file = ''] of runs.matchAll(/(?:^|\s)(\.ci\/\w+)/g)) {
      expect(() => execFileSync('bash', ['-n', join(ROOT, file)])).not.toThrow();
    }
    const called = [...runs.matchAll(/npm run (?:--silent )?([\w:]+)/g)].map(([, script = '']) => script);
    expect(called.filter((script) => !(script in scripts))).toEqual([]);
  });
});

it('runs the tests of every night by a schedule, with the last release at hand for the test of upgrades', () => {
  const { on, jobs } = read('nightly.yml');
  expect(on).toHaveProperty('schedule');
  expect(jobs.test?.steps[0]?.with).toMatchObject({ 'fetch-depth': 0 });
  expect(jobs.test?.steps.at(-1)?.run).toBe('.ci/nightly');
});

describe('the release', () => {
  const { on, jobs } = read('release.yml');

  it('is made of a tag, after all tests, and only its job may publish and sign', () => {
    expect(on).toEqual({ push: { tags: ['v*.*.*'] } });
    expect(jobs.test?.steps.slice(-2).map(({ run }) => run)).toEqual(['.ci/run', '.ci/nightly']);
    expect(jobs.image).toMatchObject({ needs: 'test' });
    expect(jobs.release).toMatchObject({
      needs: 'image',
      permissions: { contents: 'write', packages: 'write', 'id-token': 'write', attestations: 'write' },
    });
  });

  it('has an image for amd64 and for arm64, looked at before it is published', () => {
    const { strategy, steps = [] } = jobs.image ?? {};
    expect(strategy?.matrix.include?.map(({ architecture }) => architecture)).toEqual(['amd64', 'arm64']);
    const scan = steps.findIndex(({ run }) => run?.includes('--fail-on high'));
    expect(scan).toBeGreaterThan(
      steps.findIndex(({ uses }) => uses?.startsWith('docker/build-push-action@')),
    );
    expect(scan).toBeLessThan(steps.findIndex(({ uses }) => uses?.startsWith('actions/upload-artifact@')));
  });

  it('puts into the archive what is built, and only what there is', () => {
    const run =
      jobs.release?.steps.map((step) => step.run ?? '').find((text) => text.startsWith('tar ')) ?? '';
    const files = run
      .replace(/^tar -czf "[^"]*" /, '')
      .trim()
      .split(' ');
    expect(files).toEqual(
      expect.arrayContaining(['dist', 'bin', 'prisma', 'package.json', 'package-lock.json']),
    );
    expect(files.filter((file) => file !== 'dist' && !existsSync(join(ROOT, file)))).toEqual([]);
  });

  it('has files of Docker Compose and a chart that run its image', () => {
    const runs = jobs.release?.steps.map((step) => step.run ?? '') ?? [];
    const replaced = (run: string, file: string): string => {
      const [, pattern = '', text = ''] = /sed -i "s\|([^|]*)\|([^|]*)\|" /.exec(run) ?? [];
      expect(run).toContain(file);
      return readFileSync(join(ROOT, file), 'utf8').replace(new RegExp(pattern, 'm'), text);
    };
    const compose = runs.find((run) => run.includes('baton-compose-')) ?? '';
    expect(replaced(compose, '.env.example')).toContain('\nBATON_IMAGE=$IMAGE:$GITHUB_REF_NAME\n');
    const files = /tar -czf "[^"]*" (.*)/.exec(compose)?.[1]?.split(' ') ?? [];
    expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
    const mounted = ['docker-compose.yml', 'docker-compose.proxy.yml'].flatMap((name) => [
      name,
      ...[...readFileSync(join(ROOT, name), 'utf8').matchAll(/(?:- |')\.\/([^:]+):\//g)].map(
        ([, path]) => path!,
      ),
    ]);
    expect(mounted.length).toBeGreaterThan(6);
    expect(
      mounted.filter((path) => !files.some((file) => path === file || path.startsWith(`${file}/`))),
    ).toEqual([]);
    const chart = runs.find((run) => run.includes('helm package')) ?? '';
    expect(replaced(chart, 'deploy/helm/baton/values.yaml')).toContain('\n  repository: $IMAGE\n');
  });

  it('signs the provenance of everything that it publishes: image, packages, archive and bill of materials', () => {
    const steps = jobs.release?.steps ?? [];
    const signed = steps.filter(({ uses }) => uses?.startsWith('actions/attest-build-provenance@'));
    expect(signed.map((step) => step.with?.['subject-digest'] ?? step.with?.['subject-path'])).toEqual([
      '${{ steps.image.outputs.digest }}',
      'baton-*.tgz\ndist/packages/*.tgz\nbaton-sbom.cdx.json\n',
    ]);
    const bills = steps.filter(({ uses }) => uses?.startsWith('actions/attest-sbom@'));
    expect(bills).toMatchObject([{ with: { 'sbom-path': 'baton-sbom.cdx.json' } }]);
  });

  it('has a bill of materials with the packages of production, and no others', () => {
    const text = execFileSync('npm', ['run', '--silent', 'sbom'], {
      cwd: ROOT,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const bill = JSON.parse(text) as { bomFormat: string; components: { name: string }[] };
    const packages = new Set(bill.components.map(({ name }) => name));
    expect(bill.bomFormat).toBe('CycloneDX');
    expect([packages.has('fastify'), packages.has('jest'), packages.has('oxlint')]).toEqual([
      true,
      false,
      false,
    ]);
  });
});

describe('the audit of dependencies', () => {
  const folder = mkdtempSync(join(tmpdir(), 'baton-audit-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  const audit = (report: unknown) => {
    const file = join(folder, 'report.json');
    writeFileSync(file, typeof report === 'string' ? report : JSON.stringify(report));
    const { status, stdout } = spawnSync(join(ROOT, '.ci/audit'), [file], { encoding: 'utf8' });
    return { status, stdout };
  };
  const found = (severity: string) => ({
    metadata: { vulnerabilities: { total: 1 } },
    vulnerabilities: { left: { name: 'left', severity, range: '<1.0.0' } },
  });

  it('fails for grave vulnerabilities, and names them', () => {
    expect(audit(found('critical'))).toEqual({
      status: 1,
      stdout: 'critical: left <1.0.0\n1 packages with grave vulnerabilities, 1 vulnerabilities in all\n',
    });
    expect(audit(found('high')).status).toBe(1);
    expect(audit(found('moderate')).status).toBe(0);
    expect(audit({ metadata: { vulnerabilities: { total: 0 } }, vulnerabilities: {} }).status).toBe(0);
  });

  it('only warns if the registry does not answer', () => {
    for (const report of ['', '{"error":{"code":"E405"}}', '{"message":"not found"}']) {
      expect(audit(report)).toEqual({
        status: 0,
        stdout: '::warning::npm audit got no answer from the registry: nothing is known.\n',
      });
    }
  });
});
