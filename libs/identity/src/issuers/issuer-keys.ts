import { ProtocolError } from '@baton/a2a';
import { type JSONWebKeySet, type JWTVerifyGetKey, createLocalJWKSet, errors } from 'jose';

/** How long keys are used before they are read again. */
const FRESH_MS = 10 * 60_000;
/** How long keys are used while the issuer does not answer. By then its tokens have expired. */
const KEPT_MS = 24 * 3_600_000;
/** Time after a failure, or after an unknown key, before the issuer is asked again. */
const PAUSE_MS = 30_000;

/**
 * The keys of one issuer. It is asked when keys are ten minutes old, and when a token names a key that is not known: at most twice
 * a minute, whatever tokens are sent. Callers that need the same answer share one request. While the issuer does not answer, its
 * known keys stay valid for a day.
 */
export class IssuerKeys {
  private known: { find: JWTVerifyGetKey; at: number } | undefined;
  private loading: Promise<boolean> | undefined;
  private failedAt: number | undefined;
  private missedAt: number | undefined;

  /**
   * @param read asks the issuer
   * @param onFailure called when `read` rejects
   */
  constructor(
    private readonly read: () => Promise<JSONWebKeySet>,
    private readonly onFailure: (error: unknown) => void,
    private readonly now: () => number = Date.now,
  ) {}

  /** Finds the key of a token for `jwtVerify`. Rejects with ProtocolError `unavailable`, or an error of jose. */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    const find = await this.current();
    try {
      return await find(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || !(await this.reloadForUnknownKey())) throw error;
      return (await this.current())(header, token);
    }
  };

  private async current(): Promise<JWTVerifyGetKey> {
    const age = this.known && this.now() - this.known.at;
    if (this.known && age !== undefined && age < FRESH_MS) return this.known.find;
    const isFailing = this.failedAt !== undefined;
    if (this.loading || !this.isPausing(this.failedAt)) {
      const loaded = this.load();
      // With keys in the cache, no call waits again for an issuer that has just not answered.
      const isUsable = age !== undefined && age < KEPT_MS;
      if (!isUsable || !isFailing) await loaded;
    }
    if (this.known && this.now() - this.known.at < KEPT_MS) return this.known.find;
    throw ProtocolError.unavailable(
      'the keys of the issuer of the token cannot be read at the moment: send the request again later',
      Math.ceil(PAUSE_MS / 1000),
    );
  }

  /** @returns whether the keys were read again */
  private async reloadForUnknownKey(): Promise<boolean> {
    if (!this.loading) {
      if (this.isPausing(this.missedAt) || this.isPausing(this.failedAt)) return false;
      this.missedAt = this.now();
    }
    return this.load();
  }

  private isPausing(since: number | undefined): boolean {
    return since !== undefined && this.now() - since < PAUSE_MS;
  }

  /** Never rejects. */
  private load(): Promise<boolean> {
    this.loading ??= this.read()
      .then((keys) => {
        this.known = { find: createLocalJWKSet(keys), at: this.now() };
        this.failedAt = undefined;
        return true;
      })
      .catch((error: unknown) => {
        this.failedAt = this.now();
        this.onFailure(error);
        return false;
      })
      .finally(() => (this.loading = undefined));
    return this.loading;
  }
}
