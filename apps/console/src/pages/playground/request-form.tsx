import {
  Button,
  Collapse,
  FileButton,
  Group,
  SegmentedControl,
  Select,
  Stack,
  Switch,
  Textarea,
  TextInput,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import type { KeyboardEvent, ReactNode } from 'react';
import { agentsQuery } from '../../api/agents-query';
import { MissingSecrets } from '../agents/missing-secrets';
import { BINDINGS, type Draft, type DraftFile, hasOptions, VERSIONS } from './draft';
import { KeptRequests } from './kept-requests';

/** The fields of a request. @param children the buttons below its text */
export function RequestForm({
  draft,
  faults,
  onChange,
  onSend,
  children,
}: {
  draft: Draft;
  faults: Partial<Record<keyof Draft, string>>;
  onChange: (draft: Draft) => void;
  onSend: () => void;
  children: ReactNode;
}) {
  const { data } = useQuery(agentsQuery);
  const [isOpen, { toggle }] = useDisclosure(hasOptions(draft));
  const set = (change: Partial<Draft>): void => onChange({ ...draft, ...change });
  const known = data?.agents.map(({ slug }) => slug) ?? [];
  const agents = known.includes(draft.agent) ? known : [draft.agent, ...known];
  const sendByKey = ({ key, ctrlKey, metaKey }: KeyboardEvent): void => {
    if (key === 'Enter' && (ctrlKey || metaKey)) onSend();
  };
  return (
    <Stack onKeyDown={sendByKey}>
      <Select
        label="Agent"
        data={agents}
        value={draft.agent}
        onChange={(agent) => agent && set({ agent })}
        searchable
        error={faults.agent}
      />
      <MissingSecrets agent={draft.agent} />
      <Textarea
        label="Text"
        description="Ctrl-Enter sends it"
        autosize
        minRows={3}
        value={draft.text}
        onChange={({ currentTarget: { value } }) => set({ text: value })}
        error={faults.text}
      />
      <Group>
        {children}
        <Button variant="subtle" onClick={toggle} aria-expanded={isOpen}>
          Options
        </Button>
      </Group>
      <Collapse expanded={isOpen} transitionDuration={0}>
        <Stack>
          <Group>
            <SegmentedControl
              aria-label="Protocol version"
              data={[...VERSIONS]}
              value={draft.version}
              onChange={(version) => set({ version: version as Draft['version'] })}
            />
            <SegmentedControl
              aria-label="Binding"
              data={[...BINDINGS]}
              value={draft.binding}
              onChange={(binding) => set({ binding: binding as Draft['binding'] })}
            />
            <Switch
              label="Stream"
              checked={draft.isStream}
              onChange={({ currentTarget: { checked } }) => set({ isStream: checked })}
            />
          </Group>
          <Textarea
            label="Data (JSON)"
            autosize
            value={draft.data}
            onChange={({ currentTarget: { value } }) => set({ data: value })}
            error={faults.data}
          />
          <Textarea
            label="Metadata of the message (JSON)"
            autosize
            value={draft.metadata}
            onChange={({ currentTarget: { value } }) => set({ metadata: value })}
            error={faults.metadata}
          />
          <AttachedFiles files={draft.files} onChange={(files) => set({ files })} />
          <Group grow>
            <TextInput
              label="Context id"
              value={draft.contextId}
              onChange={({ currentTarget: { value } }) => set({ contextId: value })}
            />
            <TextInput
              label="Task id"
              value={draft.taskId}
              onChange={({ currentTarget: { value } }) => set({ taskId: value })}
            />
          </Group>
          <KeptRequests draft={draft} onChange={onChange} />
        </Stack>
      </Collapse>
    </Stack>
  );
}

function AttachedFiles({ files, onChange }: { files: DraftFile[]; onChange: (files: DraftFile[]) => void }) {
  const add = async (chosen: File[]): Promise<void> => {
    const read = chosen.map(async (file) => ({
      name: file.name,
      mediaType: file.type || 'application/octet-stream',
      raw: await base64Of(file),
    }));
    onChange([...files, ...(await Promise.all(read))]);
  };
  return (
    <Group gap="xs">
      <FileButton multiple onChange={(chosen) => void add(chosen)} inputProps={{ 'aria-label': 'Files' }}>
        {(props) => (
          <Button {...props} size="xs" variant="default">
            Add files
          </Button>
        )}
      </FileButton>
      {files.map(({ name, mediaType }, i) => (
        <Button
          key={`${name} ${i}`}
          size="compact-xs"
          variant="default"
          title={mediaType}
          aria-label={`Remove ${name}`}
          onClick={() => onChange(files.filter((_, other) => other !== i))}
        >
          {name} ✕
        </Button>
      ))}
    </Group>
  );
}

const base64Of = (file: File): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve((reader.result as string).replace(/^[^,]*,/, ''));
    reader.onerror = () => reject(reader.error ?? new Error(`${file.name} cannot be read`));
    reader.readAsDataURL(file);
  });
