// send NAMES TOPIC COUNT: send messages by RocketMQ's Go client of the protocol of 4.x, one by one, and as many in one batch.
// Print the result of each send as a line of JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	names, topic := os.Args[1], os.Args[2]
	count, err := strconv.Atoi(os.Args[3])
	check(err)
	rlog.SetLogLevel("error")
	sender, err := rocketmq.NewProducer(producer.WithNsResolver(primitive.NewPassthroughResolver([]string{names})), producer.WithRetry(5))
	check(err)
	check(sender.Start())
	made := func(kind string, n int) *primitive.Message {
		return primitive.NewMessage(topic, []byte(fmt.Sprintf("%s %d", kind, n)))
	}
	report := func(result *primitive.SendResult) {
		text, err := json.Marshal(map[string]any{"msgId": result.MsgID, "offsetMsgId": result.OffsetMsgID})
		check(err)
		fmt.Println(string(text))
	}
	for n := 0; n < count; n++ {
		result, err := sender.SendSync(context.Background(), made("single", n))
		check(err)
		report(result)
	}
	batch := []*primitive.Message{}
	for n := 0; n < count; n++ {
		batch = append(batch, made("batch", n))
	}
	result, err := sender.SendSync(context.Background(), batch...)
	check(err)
	report(result)
	check(sender.Shutdown())
}
