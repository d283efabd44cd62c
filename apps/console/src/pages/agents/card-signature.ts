import '../../api/buffer';
import { verifyAgentCardSignature } from '@a2a-js/sdk';
import { createRemoteJWKSet } from 'jose';
import { SERVER_URL } from '../../base';

/** Whether a card is signed by this server. */
export async function verifySignature(
  card: Record<string, unknown>,
): Promise<{ isGood: boolean; text: string }> {
  const keys = createRemoteJWKSet(new URL(`${SERVER_URL}/.well-known/jwks.json`));
  try {
    await verifyAgentCardSignature((kid) => keys({ alg: 'ES256', kid }))(card as never);
    return { isGood: true, text: 'Signed by this server. The signature is valid.' };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { isGood: false, text: `The signature is invalid: ${reason}` };
  }
}
