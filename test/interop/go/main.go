// Calls the agent with a2a-go, as a client of A2A 1.0 and of 0.3, over each binding. Prints a line for each check, as TAP
// does. Run it with ./run.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	grpcv0 "github.com/a2aproject/a2a-go/v2/a2agrpc/v0"
	grpcv1 "github.com/a2aproject/a2a-go/v2/a2agrpc/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Sends the token with every request, also with that for the card.
type authorized struct{ token string }

func (a authorized) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+a.token)
	return http.DefaultTransport.RoundTrip(request)
}

// A client of one version over one binding, and what it was made from.
type connection struct {
	*a2aclient.Client
	card *a2a.AgentCard
	kind kind
}

// Connects as users do: from the card of the agent, where the SDK can.
func connect(ctx context.Context, kind kind) (*connection, error) {
	client := &http.Client{Transport: authorized{os.Getenv("BATON_TOKEN")}}
	url := os.Getenv("BATON_URL")
	resolver := agentcard.NewResolver(client)
	resolver.CardParser = parseCard
	if kind.version == "0.3" {
		resolver.CardParser = a2av0.NewAgentCardParser()
	}
	card, err := resolver.Resolve(ctx, url, agentcard.WithRequestHeader("A2A-Version", kind.version))
	if err != nil {
		return nil, err
	}
	sdk, err := a2aclient.NewFromCard(ctx, card, a2aclient.WithDefaultsDisabled(), kind.transport(client))
	return &connection{sdk, card, kind}, err
}

// The scopes of a scheme are `{"list": [...]}` in A2A 1.0 (`StringList`). This SDK reads a bare list only.
var stringList = regexp.MustCompile(`("schemes":\{"\w+":)\{(?:"list":(\[[^]]*\]))?\}`)

func parseCard(card []byte) (*a2a.AgentCard, error) {
	return agentcard.DefaultCardParser(stringList.ReplaceAllFunc(card, func(match []byte) []byte {
		parts := stringList.FindSubmatch(match)
		if len(parts[2]) == 0 {
			parts[2] = []byte("[]")
		}
		return append(parts[1], parts[2]...)
	}))
}

type kind struct {
	version, binding string
	transport        func(*http.Client) a2aclient.FactoryOption
	// Checks that are left out.
	without []string
}

// Over JSON-RPC 1.0 an error before the first event is plain JSON, where this SDK looks for events only.
func (k kind) losesErrorsOfStreams() bool {
	return k.version == "1.0" && k.binding == "JSON-RPC"
}

var plain = grpc.WithTransportCredentials(insecure.NewCredentials())

// Not 0.3 over HTTP+JSON: there this SDK writes the JSON of JSON-RPC, not that of the protocol buffers as others do.
var kinds = []kind{
	{"1.0", "JSON-RPC", a2aclient.WithJSONRPCTransport, nil},
	{"1.0", "HTTP+JSON", a2aclient.WithRESTTransport, nil},
	{"0.3", "JSON-RPC", func(client *http.Client) a2aclient.FactoryOption {
		return a2av0.WithJSONRPCTransport(a2av0.JSONRPCTransportConfig{Client: client})
		// 0.3 cannot list tasks. This client reads no error whose `data` is an object, as all of 0.3 are.
	}, []string{"list", "unknown task", "task that cannot be canceled", "bad request"}},
	{"1.0", "gRPC", func(*http.Client) a2aclient.FactoryOption { return grpcv1.WithGRPCTransport(plain) }, nil},
	{"0.3", "gRPC", func(*http.Client) a2aclient.FactoryOption { return grpcv0.WithGRPCTransport(plain) }, []string{"list"}},
}

// Runs one check. A check ends by a panic with what was wrong.
func attempt(kind kind, run func(context.Context, *connection)) (wrong any) {
	defer func() { wrong = recover() }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	connection, err := connect(ctx, kind)
	must(err)
	if kind.binding == "gRPC" {
		// One port has all agents; 0.3 has no field to name one.
		metadata := a2aclient.ServiceParams{"authorization": {"Bearer " + os.Getenv("BATON_TOKEN")}}
		if kind.version == "0.3" {
			metadata["baton-agent"] = []string{path.Base(os.Getenv("BATON_URL"))}
		}
		ctx = a2aclient.AttachServiceParams(ctx, metadata)
	}
	run(ctx, connection)
	return nil
}

func main() {
	failed := false
	for _, kind := range kinds {
		for _, check := range checks {
			if slices.Contains(kind.without, check.name) {
				continue
			}
			name := fmt.Sprintf("%s %s: %s", kind.version, kind.binding, check.name)
			if wrong := attempt(kind, check.run); wrong != nil {
				failed = true
				fmt.Printf("not ok - %s\n# %s\n", name, strings.ReplaceAll(fmt.Sprint(wrong), "\n", "\n# "))
			} else {
				fmt.Printf("ok - %s\n", name)
			}
		}
	}
	if failed {
		os.Exit(1)
	}
}
