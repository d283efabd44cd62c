import type { Agent } from '@baton/a2a';
import { Environment } from '@baton/config';
import { type OpenVersion, RunStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { Catalog, type Viewer } from '../catalog/catalog.js';
import { LIVE_LEASES } from '../platform/worker-watch.js';

/** The open tasks of an agent by the version or code with which they have begun. */
@Injectable()
export class VersionsInUse {
  constructor(
    private readonly catalog: Catalog,
    private readonly runs: RunStore,
    private readonly environment: Environment,
  ) {}

  /** Counts the tasks of all principals of the tenant. Throws `agent-not-found`. @param name slug or id of the agent */
  async count(viewer: Viewer, name: string): Promise<{ agent: Agent; versions: OpenVersion[] }> {
    const agent = await this.catalog.get(viewer, name);
    const liveMs = this.environment.leaseMs * LIVE_LEASES;
    return { agent, versions: await this.runs.openByVersion(viewer.tenantId, agent, liveMs) };
  }
}
