import { Alert } from '@mantine/core';
import { onlineManager } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';

const subscribe = (onChange: () => void): (() => void) => onlineManager.subscribe(onChange);

/** Says that the browser is offline: what is shown is not read again meanwhile. */
export function OfflineNotice() {
  const isOnline = useSyncExternalStore(subscribe, () => onlineManager.isOnline());
  return (
    <div role="status">
      {!isOnline && (
        <Alert variant="default" mb="md" title="You are offline">
          The page shows what it has read so far. It continues when the connection is back.
        </Alert>
      )}
    </div>
  );
}
