// Go's own client.
package main

import (
	"fmt"
	"io"
	"net/http"
)

func main() {
	answer, err := http.Get("https://api.example.com/items/1")
	if err != nil {
		panic(err)
	}
	body, _ := io.ReadAll(answer.Body)
	fmt.Println(string(body))
}
