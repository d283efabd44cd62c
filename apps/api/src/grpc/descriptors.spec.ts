import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

describe('descriptors.ts', () => {
  it('is what the .proto files compile to', () => {
    const generate = join(__dirname, 'proto/generate.mjs');
    expect(() => execFileSync(process.execPath, [generate, '--check'], { stdio: 'pipe' })).not.toThrow();
  });
});
