import {
  ActionIcon,
  Anchor,
  AppShell,
  Badge,
  Burger,
  Button,
  Group,
  Kbd,
  Menu,
  NavLink,
  Text,
  UnstyledButton,
  useMantineColorScheme,
} from '@mantine/core';
import { useDisclosure, useHotkeys } from '@mantine/hooks';
import { Link, Outlet, useRouterState } from '@tanstack/react-router';
import { type ReactNode, Suspense } from 'react';
import icon from '../icon.svg';
import { lazyPage } from '../components/lazy-page';
import { hasScope, useCaller } from '../session/caller';
import { useOperator } from '../session/operator';
import { endSession, useSession } from '../session/session';
import { useWaitingTasks } from '../session/waiting-tasks';
import { Icon } from './icon';
import { NAVIGATION, type NavigationGroup, OPERATOR_NAVIGATION, type ShownEntry } from './navigation';
import { OfflineNotice } from './offline-notice';
import type { Palette as PaletteType } from './palette';
import styles from './shell.module.css';

/** Its code is loaded when the user opens it first. */
const Palette = lazyPage(() => import('./palette'), 'Palette') as unknown as typeof PaletteType;

const SCHEMES = { light: 'dark', dark: 'auto', auto: 'light' } as const;
const SCHEME_SIGNS = { light: '☀', dark: '☾', auto: '◐' } as const;

/** The frame of every page of a tenant: the navigation by scopes, who has signed in, the colour scheme. */
export function Shell() {
  const caller = useCaller();
  const groups = NAVIGATION.map(({ entries, ...group }) => ({
    ...group,
    entries: entries.filter(({ scopes }) => hasScope(caller, scopes)),
  })).filter(({ entries }) => entries.length > 0);
  const badges = { '/inbox': <WaitingBadge /> };
  return <Frame of={caller.tenant} groups={groups} badges={badges} menu={<CallerMenu />} />;
}

/** The frame of every page of operators. */
export function OperatorShell() {
  return <Frame of="Operators" groups={OPERATOR_NAVIGATION} menu={<OperatorMenu />} />;
}

function Frame({
  of,
  groups,
  badges = {},
  menu,
}: {
  /** Whose pages they are. */
  of: string;
  groups: readonly NavigationGroup<ShownEntry>[];
  /** The badge of an entry, by its path. */
  badges?: Readonly<Record<string, ReactNode>>;
  menu: ReactNode;
}) {
  const [isOpen, { toggle, close }] = useDisclosure(false);
  const [isFinding, finding] = useDisclosure(false);
  // Wherever the focus is, also in a text field.
  useHotkeys([['mod+K', finding.open]], [], true);
  const path = useRouterState({ select: ({ location }) => location.pathname });
  return (
    <AppShell
      header={{ height: '3.25rem' }}
      navbar={{ width: '13rem', breakpoint: 'sm', collapsed: { mobile: !isOpen } }}
      padding="md"
    >
      <a className={styles.skip} href="#content">
        Skip to the content
      </a>
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={isOpen} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Navigation" />
            <Anchor component={Link} to="/" fw={700} c="inherit" underline="never" className={styles.brand}>
              <img src={icon} alt="" />
              Baton
            </Anchor>
            <Text size="sm" truncate visibleFrom="xs">
              {of}
            </Text>
          </Group>
          <Group gap="xs" wrap="nowrap">
            <Button
              size="compact-sm"
              variant="default"
              onClick={finding.open}
              aria-keyshortcuts="Control+K Meta+K"
              aria-haspopup="dialog"
            >
              Go to…
              <Kbd size="xs" ml="xs" visibleFrom="sm">
                Ctrl K
              </Kbd>
            </Button>
            <SchemeButton />
            {menu}
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label="Pages">
        {groups.map(({ title, entries }) => (
          <div key={title ?? ''} role={title === undefined ? undefined : 'group'} aria-label={title}>
            {title !== undefined && (
              <Text size="xs" fw={600} className={styles.group} aria-hidden>
                {title}
              </Text>
            )}
            {entries.map(({ label, icon: name, to }) => (
              <NavLink
                key={to}
                component={Link}
                to={to}
                label={label}
                leftSection={<Icon name={name} />}
                className={styles.entry}
                rightSection={badges[to]}
                onClick={close}
                activeOptions={{ exact: true }}
                active={path === to || path.startsWith(`${to}/`)}
                aria-current={path === to ? 'page' : undefined}
              />
            ))}
          </div>
        ))}
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        <OfflineNotice />
        <Outlet />
      </AppShell.Main>
      {isFinding && (
        <Suspense>
          <Palette pages={groups.flatMap(({ entries }) => entries)} close={finding.close} />
        </Suspense>
      )}
    </AppShell>
  );
}

/** How many tasks wait for the caller, as far as they are read. Nothing, while there are none. */
function WaitingBadge() {
  const { tasks = [], hasNextPage } = useWaitingTasks();
  if (tasks.length === 0) return null;
  return (
    <Badge variant="outline" c="inherit" color="orange">
      {tasks.length}
      {hasNextPage && '+'}
    </Badge>
  );
}

function SchemeButton() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const next = SCHEMES[colorScheme];
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      onClick={() => setColorScheme(next)}
      aria-label={`Colours: ${colorScheme}. Change to ${next}`}
    >
      {SCHEME_SIGNS[colorScheme]}
    </ActionIcon>
  );
}

/** Who has signed in, and what that token may do. */
function CallerMenu() {
  const caller = useCaller();
  const { session } = useSession();
  const name = caller.token?.name ?? (session?.kind === 'oidc' ? session.name : caller.principal.kind);
  return (
    <Menu position="bottom-end" width="18rem">
      <Menu.Target>
        <UnstyledButton className={styles.caller}>{name} ▾</UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>Tenant {caller.tenant}</Menu.Label>
        <Menu.Label>{caller.token ? `Token ${caller.token.prefix}…` : caller.principal.key}</Menu.Label>
        <Menu.Label>May do: {caller.scopes.join(', ') || 'nothing'}</Menu.Label>
        {caller.agents && <Menu.Label>Agents: {caller.agents.join(', ') || 'none'}</Menu.Label>}
        <Menu.Divider />
        <Menu.Item onClick={() => endSession()}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

/** The token of the operator. */
function OperatorMenu() {
  const { token } = useOperator();
  return (
    <Menu position="bottom-end" width="18rem">
      <Menu.Target>
        <UnstyledButton className={styles.caller}>{token.name} ▾</UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>Operator token {token.prefix}…</Menu.Label>
        <Menu.Divider />
        <Menu.Item onClick={() => endSession()}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
