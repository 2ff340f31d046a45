// The scheduler of an integration test, run as a program of its own.
//
// This file is added to a copy of k8s.io/kubernetes/pkg/scheduler at build time, together with edits: New calls
// rememberOptions, the original Run and ScheduleOne are called runInProcess and scheduleOneInProcess, and tests call Start
// instead of Run in a goroutine. The scheduler that New builds still follows the cluster, because tests wait for its cache
// and its queue, but it decides nothing: the program named by EXTERNAL_SCHEDULER does, with the configuration that the test
// asked for.
package scheduler

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	configv1 "k8s.io/kube-scheduler/config/v1"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
)

const (
	// How long a program may take until it has read the cluster, on a busy machine.
	startup = 2 * time.Minute
	// How long a program may take to end after it was interrupted.
	grace = 10 * time.Second
)

// What is known of a scheduler that a test has asked for.
type externalScheduler struct {
	options schedulerOptions
	start   sync.Once
	log     atomic.Value
	ended   atomic.Bool
}

var remembered sync.Map

func rememberOptions(sched *Scheduler, options schedulerOptions) {
	remembered.Store(sched, &externalScheduler{options: options})
}

func externalOf(sched *Scheduler) *externalScheduler {
	value, _ := remembered.Load(sched)
	external, _ := value.(*externalScheduler)
	return external
}

// IsExternal tells whether a program takes the place of this scheduler.
func (sched *Scheduler) IsExternal() bool {
	external := externalOf(sched)
	return external != nil && os.Getenv("EXTERNAL_SCHEDULER") != "" && len(external.goPlugins()) == 0
}

// Start runs the program in the background, and returns when it has read the cluster: a scheduler in this process has read
// it before it runs, and tests count their seconds from there.
func (sched *Scheduler) Start(ctx context.Context) {
	go sched.Run(ctx)
	if !sched.IsExternal() {
		return
	}
	external := externalOf(sched)
	ready := regexp.MustCompile(os.Getenv("EXTERNAL_SCHEDULER_READY"))
	for deadline := time.Now().Add(startup); time.Now().Before(deadline) && ctx.Err() == nil && !external.ended.Load(); {
		if ready.Match(external.logged()) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Run starts the program and ends it with the context. Without a program the scheduler runs in this process.
func (sched *Scheduler) Run(ctx context.Context) {
	if !sched.IsExternal() {
		sched.sayWhyInProcess()
		sched.runInProcess(ctx)
		return
	}
	external := externalOf(sched)
	external.start.Do(func() {
		if err := external.runProgram(ctx, os.Getenv("EXTERNAL_SCHEDULER")); err != nil {
			fmt.Printf("EXTERNAL-SCHEDULER failed: %v\n", err)
		}
		external.ended.Store(true)
	})
}

// ScheduleOne lets the program schedule all pods there are: it cannot be stopped after one.
func (sched *Scheduler) ScheduleOne(ctx context.Context) {
	if !sched.IsExternal() {
		sched.sayWhyInProcess()
		sched.scheduleOneInProcess(ctx)
		return
	}
	sched.Start(ctx)
}

// The test says nothing about the program; running it here only keeps the tests around it going.
func (sched *Scheduler) sayWhyInProcess() {
	if external := externalOf(sched); external != nil && os.Getenv("EXTERNAL_SCHEDULER") != "" {
		external.start.Do(func() { fmt.Println("EXTERNAL-SCHEDULER needs plugins written in Go") })
	}
}

// ExternalAttempts counts how often the program has tried to schedule a pod, by its log.
func (sched *Scheduler) ExternalAttempts(pod *v1.Pod) int {
	name := regexp.QuoteMeta(pod.Namespace + "/" + pod.Name)
	pattern := strings.ReplaceAll(os.Getenv("EXTERNAL_SCHEDULER_ATTEMPT"), "POD", name)
	return len(regexp.MustCompile(pattern).FindAll(externalOf(sched).logged(), -1))
}

// What the program has written to its log.
func (external *externalScheduler) logged() []byte {
	path, _ := external.log.Load().(string)
	text, _ := os.ReadFile(path)
	return text
}

// The plugins of the test that the program would need; those that let every pod pass are left out.
func (external *externalScheduler) goPlugins() []string {
	var names []string
	for name := range external.options.frameworkOutOfTreeRegistry {
		if !slices.Contains(passingPlugins(), name) {
			names = append(names, name)
		}
	}
	return names
}

func passingPlugins() []string {
	return strings.Split(os.Getenv("EXTERNAL_SCHEDULER_PASSING_PLUGINS"), ",")
}

func (external *externalScheduler) runProgram(ctx context.Context, program string) error {
	options := external.options
	if options.kubeConfig == nil {
		return fmt.Errorf("the test gives no address of the API server")
	}
	folder, err := os.MkdirTemp("", "external-scheduler-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := writeKubeconfig(kubeconfig, options.kubeConfig); err != nil {
		return err
	}
	config := filepath.Join(folder, "config.yaml")
	if err := writeConfiguration(config, kubeconfig, options); err != nil {
		return err
	}
	log, err := os.Create(logName(folder))
	if err != nil {
		return err
	}
	defer log.Close()
	external.log.Store(log.Name())
	command := exec.CommandContext(ctx, program, "--config", config, "--secure-port", "0")
	command.Env = append(os.Environ(), "CHANGED_FEATURE_GATES="+changedGates(), "EMULATED_VERSION="+emulatedVersion())
	command.Stdout, command.Stderr = log, log
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = grace
	fmt.Println("EXTERNAL-SCHEDULER started")
	if err := command.Run(); ctx.Err() == nil {
		return fmt.Errorf("it ended by itself: %v; its log is %s", err, log.Name())
	}
	return nil
}

// The feature gates that the test changed, as kube-scheduler's flag takes them.
func changedGates() string {
	var changed []string
	for name, spec := range feature.DefaultMutableFeatureGate.GetAll() {
		if enabled := feature.DefaultFeatureGate.Enabled(name); enabled != spec.Default {
			changed = append(changed, fmt.Sprintf("%s=%t", name, enabled))
		}
	}
	sort.Strings(changed)
	return strings.Join(changed, ",")
}

// The version whose feature gates the test asked for, as kube-scheduler's flag takes it.
func emulatedVersion() string {
	version := feature.DefaultMutableFeatureGate.EmulationVersion()
	return fmt.Sprintf("%d.%d", version.Major(), version.Minor())
}

// Logs are kept where EXTERNAL_SCHEDULER_LOGS says, one for each start.
func logName(folder string) string {
	if logs := os.Getenv("EXTERNAL_SCHEDULER_LOGS"); logs != "" {
		return filepath.Join(logs, filepath.Base(folder)+".log")
	}
	return filepath.Join(folder, "log")
}

func writeKubeconfig(path string, config *rest.Config) error {
	cluster := clientcmdapi.NewCluster()
	cluster.Server = config.Host
	cluster.CertificateAuthorityData = config.CAData
	cluster.CertificateAuthority = config.CAFile
	cluster.TLSServerName = config.ServerName
	cluster.InsecureSkipTLSVerify = config.Insecure
	user := clientcmdapi.NewAuthInfo()
	user.Token = config.BearerToken
	user.ClientCertificateData, user.ClientKeyData = config.CertData, config.KeyData
	user.ClientCertificate, user.ClientKey = config.CertFile, config.KeyFile
	result := clientcmdapi.NewConfig()
	result.Clusters["test"], result.AuthInfos["test"] = cluster, user
	context := clientcmdapi.NewContext()
	context.Cluster, context.AuthInfo = "test", "test"
	result.Contexts["test"], result.CurrentContext = context, "test"
	return clientcmd.WriteToFile(*result, path)
}

func writeConfiguration(path, kubeconfig string, options schedulerOptions) error {
	versioned := configv1.KubeSchedulerConfiguration{}
	scheme.Scheme.Default(&versioned)
	config := schedulerapi.KubeSchedulerConfiguration{}
	if err := scheme.Scheme.Convert(&versioned, &config, nil); err != nil {
		return err
	}
	config.Extenders, config.Profiles = options.extenders, nil
	for _, profile := range options.profiles {
		config.Profiles = append(config.Profiles, withoutPassingPlugins(profile))
	}
	config.PercentageOfNodesToScore = &options.percentageOfNodesToScore
	// Tests that look into the queue ask for no backoff at all, which a configuration cannot.
	config.PodInitialBackoffSeconds = max(1, options.podInitialBackoffSeconds)
	config.PodMaxBackoffSeconds = max(1, options.podMaxBackoffSeconds)
	config.Parallelism = options.parallelism
	config.LeaderElection.LeaderElect = false
	config.ClientConnection.Kubeconfig = kubeconfig
	// Tests ask at once for more than the default 50 requests a second allow.
	config.ClientConnection.QPS, config.ClientConnection.Burst = 5000, 5000
	yaml, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeYAML)
	text := bytes.Buffer{}
	if err := scheme.Codecs.EncoderForVersion(yaml.Serializer, configv1.SchemeGroupVersion).Encode(&config, &text); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o600)
}

// The profile without the plugins that only exist in the test.
func withoutPassingPlugins(profile schedulerapi.KubeSchedulerProfile) schedulerapi.KubeSchedulerProfile {
	if profile.Plugins == nil {
		return profile
	}
	profile.Plugins = profile.Plugins.DeepCopy()
	points := reflect.ValueOf(profile.Plugins).Elem()
	for i := range points.NumField() {
		if set, ok := points.Field(i).Addr().Interface().(*schedulerapi.PluginSet); ok {
			set.Enabled = slices.DeleteFunc(set.Enabled, func(plugin schedulerapi.Plugin) bool {
				return slices.Contains(passingPlugins(), plugin.Name)
			})
		}
	}
	return profile
}
