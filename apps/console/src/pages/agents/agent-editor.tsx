import { Alert, Button, Group, List, Skeleton, Stack, Text } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useBlocker, useNavigate } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { ApiError } from '../../api/api-error';
import { CodeEditor, type Problem } from '../../components/code-editor';
import { ErrorView } from '../../components/error-view';
import { Page } from '../../components/page';
import { useCaller } from '../../session/caller';
import { AgentSource } from './agent-source';
import { type Agent, agentQuery, documentText, endTry, schemaQuery, writeAgent } from './agents-api';
import { BothVersions } from './both-versions';
import { schemaCompletions } from './schema-help';

/** Pause in typing after which the text is checked, in ms. */
const CHECK_AFTER_MS = 300;

const TEMPLATE = `name: Helper
description: Answers questions and keeps notes.
runtime: llm
config:
  model: openai/gpt-5-mini
  prompt: You are a helpful assistant. Be brief.
`;

const route = getRouteApi('/app/agents/$agent/edit');

/** Makes an agent of the catalog. */
export const NewAgentPage = () => <Editor title="New agent" initial={TEMPLATE} />;

/** Changes an agent of the catalog. */
export function EditAgentPage() {
  const { agent: name } = route.useParams();
  // What others write meanwhile must not replace what is being typed. The ETag refuses to overwrite it.
  const { data, error } = useQuery({ ...agentQuery(name), staleTime: Infinity, gcTime: 0 });
  if (error) return <ErrorView error={error} />;
  if (!data) return <Skeleton height={200} />;
  return (
    <Editor
      key={data.etag}
      title={`Edit ${data.agent.slug}`}
      agent={data.agent}
      initial={documentText(data.agent)}
      etag={data.etag}
    />
  );
}

/** The result of the server's check of a text. */
interface Checked {
  text: string;
  problems: Problem[];
  outcome?: string;
  error?: unknown;
}

function Editor({
  title,
  agent: edited,
  initial,
  etag,
}: {
  title: string;
  /** Unset: it makes a new one. */
  agent?: Agent;
  initial: string;
  etag?: string | undefined;
}) {
  const name = edited?.slug;
  const { can } = useCaller();
  const [text, setText] = useState(initial);
  /** The version with the label next and without a share: it was tried. */
  const [tried, setTried] = useState(edited?.next?.share === 0 ? edited.next.version : undefined);
  /** What was saved: the server has accepted it. */
  const [saved, setSaved] = useState<Pick<Agent, 'slug' | 'version'> & { text: string }>();
  const [checked, setChecked] = useState<Checked>();
  const navigate = useNavigate();
  const queries = useQueryClient();
  const { data: schema } = useQuery(schemaQuery);
  const [settled] = useDebouncedValue(text, CHECK_AFTER_MS);
  const completions = useMemo(() => schema && schemaCompletions(schema), [schema]);
  const problems = useMemo(() => {
    // The server's check is more exact than the schema, as long as the text is the same.
    return checked?.text === settled ? checked.problems : new AgentSource(settled).problems(schema);
  }, [settled, schema, checked]);
  const write = useMutation({
    mutationFn: async (options: { dryRun: boolean; checkTools?: boolean }) => {
      const source = new AgentSource(text);
      const faults = source.value === undefined ? source.problems(undefined) : [];
      if (faults.length > 0) return setChecked({ text, problems: faults });
      try {
        const written = await writeAgent(name, source.value, { ...options, etag });
        const { outcome, agent, warnings = [], hints = [], unchecked_tools: unchecked = [] } = written;
        if (options.dryRun) {
          const found = [...warnings, ...hints, ...unchecked].map(({ field, description }) =>
            source.at(field, description, 'warning'),
          );
          const tools = options.checkTools === true && unchecked.length === 0 ? ` ${TOOLS_FIT}` : '';
          return setChecked({ text, problems: found, outcome: `${OUTCOMES[outcome]}${tools}` });
        }
        setChecked(undefined);
        setSaved({ ...agent, text });
        leave.mutate(agent.slug);
      } catch (error) {
        noteRefusal(source, error);
      }
    },
  });
  const leave = useMutation({
    mutationFn: async (slug: string) => {
      // The tried document is saved or discarded.
      if (tried !== undefined) await endTry(slug, tried);
      await queries.invalidateQueries({ queryKey: ['agents'] });
      await navigate({ to: '/agents/$agent', params: { agent: slug }, ignoreBlocker: true });
    },
  });
  const noteRefusal = (source: AgentSource, error: unknown): void => {
    const fields = error instanceof ApiError ? error.fields : [];
    // The document is a member of what was sent.
    const found = fields.map(({ field, description }) =>
      source.at(field.replace(/^agent\./, ''), description, 'error'),
    );
    setChecked({ text, problems: found, error });
  };
  const prepare = (): unknown => {
    const source = new AgentSource(text);
    if (source.value !== undefined) return source.value;
    setChecked({ text, problems: source.problems(undefined) });
    return undefined;
  };
  const isUnsaved = text !== (saved?.text ?? initial);
  useBlocker({
    shouldBlockFn: () => isUnsaved && !window.confirm('Leave this page? Your changes are lost.'),
    enableBeforeUnload: () => isUnsaved,
  });
  const isChecked = checked?.text === text;
  return (
    <Page
      title={title}
      actions={
        <>
          <Button
            size="xs"
            variant="default"
            component={Link}
            to={name === undefined ? '/agents' : `/agents/${name}`}
          >
            Cancel
          </Button>
          <Button
            size="xs"
            variant="default"
            loading={write.isPending}
            onClick={() => write.mutate({ dryRun: true })}
          >
            Dry run
          </Button>
          <Button
            size="xs"
            variant="default"
            loading={write.isPending}
            onClick={() => write.mutate({ dryRun: true, checkTools: true })}
          >
            Check the tools
          </Button>
          <Button
            size="xs"
            disabled={saved !== undefined}
            loading={write.isPending || leave.isPending}
            onClick={() => write.mutate({ dryRun: false })}
          >
            Save
          </Button>
        </>
      }
    >
      <Text size="sm" c="dimmed">
        YAML or JSON. Ctrl-Space shows the fields that are allowed at the cursor. Name secrets as{' '}
        {'{secret: name}'}: never write their values here.
      </Text>
      <CodeEditor
        label="Definition of the agent"
        value={text}
        onChange={setText}
        problems={problems}
        {...(completions && { completions })}
      />
      <Problems problems={problems} />
      {isChecked && checked.outcome !== undefined && (
        <Alert color="green" variant="light" title="Dry run" role="status">
          {checked.outcome}
        </Alert>
      )}
      {isChecked &&
        checked.error !== undefined &&
        (checked.problems.length > 0 ? (
          <Alert color="red" variant="light" title="It was not accepted" role="alert">
            Mend the problems above, then try again.
          </Alert>
        ) : (
          <ErrorView error={checked.error} title="It was not accepted" />
        ))}
      {saved && leave.error && (
        <ErrorView
          error={leave.error}
          title={`Version ${saved.version} is saved, but version ${tried} is still being tried: it could not be withdrawn`}
          retry={() => leave.mutate(saved.slug)}
        />
      )}
      {edited && !saved && can('agents:call') && (
        <BothVersions
          agent={edited}
          prepare={prepare}
          onRefused={(error) => noteRefusal(new AgentSource(text), error)}
          onTried={setTried}
        />
      )}
    </Page>
  );
}

const TOOLS_FIT = 'Its MCP servers answer, and have the tools that it names.';
const OUTCOMES = {
  created: 'The agent would be created. Nothing was written.',
  updated: 'The agent would be changed. Nothing was written.',
  unchanged: 'Nothing would change.',
} as const;

/** The problems as a list, as at the marks of the lines. */
function Problems({ problems }: { problems: readonly Problem[] }) {
  return (
    <Stack gap="xs" role="status" aria-label="Problems">
      {problems.length === 0 ? (
        <Text size="sm">No problems found.</Text>
      ) : (
        <List size="sm">
          {problems.map(({ line, message, severity }) => (
            <List.Item key={`${line} ${message}`}>
              <Group gap="xs" component="span">
                <b>
                  Line {line}
                  {severity === 'warning' && ' (warning)'}
                </b>
                {message}
              </Group>
            </List.Item>
          ))}
        </List>
      )}
    </Stack>
  );
}
